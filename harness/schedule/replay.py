"""When each rank of a pipeline would work, and how long it would wait."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.schedule.orders import Action, Schedule
from harness.schedule.program import Instruction, execution_order

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


def replay_program(
    schedule: Schedule,
    programs: Sequence[Sequence[Instruction]],
    blocking: bool,
    duration: Duration = lambda rank, action: 1.0,
    send: float = 0.0,
) -> Timeline:
    """Plays what the ranks would execute, message by message, in the order in which they were sent.

    Args:
        schedule: gives the number of ranks.
        programs: one a rank.
        blocking: whether a send waits for its receiver.
        duration: time of each action.
        send: time of a message.

    Raises:
        ValueError: ranks wait for each other for ever, or one receives what was not sent next.
    """
    now = [0.0] * schedule.stages
    position = [0] * schedule.stages
    spans: list[list[Span]] = [[] for _ in range(schedule.stages)]
    channels: dict[tuple[int, int], list[tuple[Action, float]]] = {}

    def step(rank: int) -> bool:
        """Executes a rank's next instruction if it can."""
        if position[rank] == len(programs[rank]):
            return False
        instruction = programs[rank][position[rank]]
        action, peer = instruction.action, instruction.peer
        if instruction.operation == "compute":
            start, now[rank] = now[rank], now[rank] + duration(rank, action)
            spans[rank].append(Span(start, now[rank], action))
        elif instruction.operation == "send" and not blocking:
            channels.setdefault((rank, peer), []).append((action, now[rank] + send))
        elif instruction.operation == "send":
            if not _receives(programs[peer], position[peer], rank):
                return False
            _check_order(programs[peer][position[peer]].action, action)
            now[rank] = now[peer] = max(now[rank], now[peer]) + send
            position[peer] += 1
        else:
            if blocking or not channels.get((peer, rank)):
                return False
            sent, arrival = channels[peer, rank].pop(0)
            _check_order(action, sent)
            now[rank] = max(now[rank], arrival)
        position[rank] += 1
        return True

    while any(step(rank) for rank in range(schedule.stages)):
        pass
    stuck = [f"rank {r}: {programs[r][i]}" for r, i in enumerate(position) if i < len(programs[r])]
    if stuck:
        raise ValueError(f"{schedule.name}: deadlock: {', '.join(stuck)}")
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


def _receives(program: Sequence[Instruction], position: int, peer: int) -> bool:
    """Whether a rank has come to a message from a peer."""
    following = program[position : position + 1]
    return any(instruction.operation == "receive" and instruction.peer == peer for instruction in following)


def _check_order(expected: Action, sent: Action) -> None:
    if expected != sent:
        raise ValueError(f"{expected} is to be received next, and {sent} was sent: messages carry no tags")
