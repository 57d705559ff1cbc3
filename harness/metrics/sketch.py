"""Short sketches of long vectors, from which their distance can be told.

A vector's products with a few random vectors of signs: for two vectors, the mean square of the difference of their
sketches estimates the square of their distance, whatever that is (Achlioptas 2003, «Database-friendly random
projections»). Products are sums, so ranks that hold shards add theirs up and never need to meet.
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SIGNS = 16
"""Random vectors; the distance is then right to about √(2 / 16) / 2, a fifth."""


def sketch(name: str, values: npt.NDArray[np.float32], axis: int = 0, shard: int = 0, shards: int = 1) -> list[float]:
    """The sketch of a shard of a parameter; those of all shards add up to that of the whole.

    Args:
        name: of the parameter; decides the signs.
        values: of this shard.
        axis: along which the parameter is cut.
        shard: this shard's number.
        shards: their number.
    """
    shape = list(values.shape)
    if shape:
        shape[axis] *= shards
    random = _random(name)
    found = []
    for _ in range(SIGNS):
        drawn = random.integers(0, 2, shape, np.int8)
        own = np.split(drawn, shards, axis)[shard] if shape else drawn
        found.append(float(np.where(own.astype(bool), values, -values).sum(dtype=np.float64)))
    return found


def signs(name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """(SIGNS, …) of the vectors that a sketch multiplies with: 1 and −1, decided by the name."""
    random = _random(name)
    return np.stack([2.0 * random.integers(0, 2, shape, np.int8) - 1.0 for _ in range(SIGNS)])


def _random(name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")))


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Estimated Euclidean distance of two sketched vectors; exactly 0 for equal ones."""
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / len(one))
