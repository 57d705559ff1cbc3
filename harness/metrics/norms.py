"""Norms over parameters that ranks share or hold in part."""

import math
from collections.abc import Iterable


def global_norm(parts: Iterable[tuple[float, int]]) -> float:
    """Norm of a gradient of which ranks hold shards and copies.

    Args:
        parts: (sum of squares, replicas) pairs: what all ranks together hold of a parameter, and on how many of them
            the same values stand. A shard that one rank alone holds has one replica.

    Returns:
        The norm that one process with all parameters would compute.
    """
    return math.sqrt(math.fsum(squares / replicas for squares, replicas in parts))
