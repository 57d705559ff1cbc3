"""What a rank sends in a step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Collective:
    """One collective operation of every step."""

    kind: str
    """MindSpore's name of it."""

    size: int
    """Bytes that this rank puts in."""
