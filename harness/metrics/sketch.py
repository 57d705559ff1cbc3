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
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    random = np.random.Generator(np.random.PCG64(seed))
    found = []
    for _ in range(SIGNS):
        signs = random.integers(0, 2, shape, np.int8)
        own = np.split(signs, shards, axis)[shard] if shape else signs
        found.append(float(np.where(own.astype(bool), values, -values).sum(dtype=np.float64)))
    return found


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Estimated Euclidean distance of two sketched vectors; exactly 0 for equal ones."""
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / len(one))
