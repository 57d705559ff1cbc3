"""How much of a step communication takes, and how much of that nothing hides."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.errors import Undefined

Interval = tuple[float, float]
"""Start and end, in any one unit."""


@dataclass(frozen=True)
class Exposure:
    """Communication within one step of one rank."""

    total: float
    """Time in which at least one message was under way; concurrent ones count once."""

    overlapped: float
    """Part of it in which the rank computed."""

    exposed: float
    """The rest, in which it waited."""

    share: float
    """Exposed time as a share of the step, from its first event to its last."""


def exposed(compute: Iterable[Interval], communication: Iterable[Interval]) -> Exposure:
    """Splits communication into what computing hides and what it does not.

    Args:
        compute: intervals in which the rank computed; they may overlap, and touch in any order.
        communication: intervals of messages and collectives.

    Raises:
        Undefined: there is no event, or the step has no length.
        ValueError: an interval ends before it starts.
    """
    working, talking = _union(compute), _union(communication)
    events = [*working, *talking]
    length = max(end for _, end in events) - min(start for start, _ in events) if events else 0.0
    if length <= 0:
        raise Undefined("a step without events has no share of communication")
    total = sum(end - start for start, end in talking)
    overlapped = sum(
        max(0.0, min(end, other_end) - max(start, other_start))
        for start, end in talking
        for other_start, other_end in working
    )
    hidden = min(overlapped, total)
    return Exposure(total, hidden, total - hidden, (total - hidden) / length)


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same times as disjoint intervals, sorted."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if not start <= end:
            raise ValueError(f"interval ({start}, {end}) ends before it starts")
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
