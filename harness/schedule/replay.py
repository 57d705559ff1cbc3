"""When each rank of a pipeline would work, and how long it would wait."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.schedule.orders import Action, Schedule
from harness.schedule.program import execution_order

Duration = Callable[[int, Action], float]
"""Rank and action → seconds, or any other unit."""


@dataclass(frozen=True)
class Span:
    """One action in time."""

    start: float
    end: float
    action: Action


@dataclass(frozen=True)
class Timeline:
    """A replayed schedule."""

    spans: tuple[tuple[Span, ...], ...]
    """Of each rank, in order."""

    @property
    def makespan(self) -> float:
        """From the first start to the last end."""
        return max(rank[-1].end for rank in self.spans) - min(rank[0].start for rank in self.spans)

    @property
    def busy(self) -> tuple[float, ...]:
        """Working time of each rank."""
        return tuple(sum(span.end - span.start for span in rank) for rank in self.spans)

    @property
    def idle(self) -> tuple[float, ...]:
        """Share of the makespan that each rank waits."""
        return tuple(1 - busy / self.makespan for busy in self.busy)

    @property
    def bubble_ratio(self) -> float:
        """Idle over total time, of all ranks together."""
        return 1 - sum(self.busy) / (len(self.spans) * self.makespan)


def bubble_ratio(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Idle over total time where all parts take the same: (p − 1) / (m·v + p − 1).

    Holds for GPipe, 1F1B, and interleaving whose micro-batches are a multiple of the stages (Narayanan et al. 2021,
    «Efficient Large-Scale Language Model Training on GPU Clusters», section 2.2, whose own ratio is idle over ideal).
    """
    return (stages - 1) / (micro_batches * chunks + stages - 1)


def replay(
    schedule: Schedule,
    forward: float = 1.0,
    backward: float = 2.0,
    send: float = 0.0,
    weights: float = 0.5,
    duration: Duration | None = None,
) -> Timeline:
    """Plays a schedule with buffered sends: an output travels while its rank goes on.

    Args:
        schedule: the order of actions.
        forward: a rank's time for one micro-batch through all of its chunks.
        backward: likewise; where the schedule splits it, both parts together.
        send: from the end of an action until another rank has its output.
        weights: share of ``backward`` that is the gradients of weights, where it is split.
        duration: measured times in place of ``forward`` and ``backward``.

    Raises:
        ValueError: ranks would wait for each other for ever.
    """
    lasts = duration or _uniform(schedule, forward, backward, weights)
    ends: dict[tuple[int, Action], float] = {}
    free = [0.0] * schedule.stages
    spans: list[list[Span]] = [[] for _ in range(schedule.stages)]
    for rank, action in execution_order(schedule):
        needed = schedule.needs(rank, action)
        arrivals = [ends[where, what] + (send if where != rank else 0.0) for where, what in needed]
        start = max([free[rank], *arrivals])
        free[rank] = ends[rank, action] = start + lasts(rank, action)
        spans[rank].append(Span(start, free[rank], action))
    return Timeline(tuple(tuple(rank) for rank in spans))


def draw(timeline: Timeline, width: int = 100) -> str:
    """One line a rank: F, B and W with the number of the micro-batch where there is room, dots where it waits."""
    scale = width / timeline.makespan
    begin = min(rank[0].start for rank in timeline.spans)
    lines = []
    for number, rank in enumerate(timeline.spans):
        line = ["·"] * width
        for span in rank:
            first, last = round((span.start - begin) * scale), round((span.end - begin) * scale)
            room = last - first
            text = str(span.action) if len(str(span.action)) <= room else span.action.kind
            line[first:last] = text.ljust(room, {"F": "▒", "B": "█", "W": "▓"}[span.action.kind])[:room]
        lines.append(f"{number:>3} {''.join(line)}")
    return "\n".join(lines)


def _uniform(schedule: Schedule, forward: float, backward: float, weights: float) -> Duration:
    inputs = 1 - weights if schedule.splits_backward else 1.0
    times = {"F": forward, "B": backward * inputs, "W": backward * weights}
    return lambda rank, action: times[action.kind] / schedule.chunks
