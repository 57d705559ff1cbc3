"""What ranks did when: recorded events, and what they say of waiting and of communication. Pure."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from harness.errors import Undefined
from harness.metrics.comm import Exposure, Interval, exposed
from harness.schedule import Action, Schedule, Timeline, replay

EventKind = Literal["compute", "send", "receive", "collective", "wait", "alone"]
"""``wait``: until all ranks of a replica are done with their gradients. ``alone``: an action of a stage, done again
after training while the other stages rest, to know how long it takes where nobody is in its way."""


class Event(NamedTuple):
    """One thing that a rank did."""

    step: int
    """Number of the step, from 1; 0 outside of steps."""

    kind: EventKind
    name: str
    """Of a stage's work, the action (``F3``, ``B0.1``); of a message, the action whose output it carries."""

    start: float
    """Seconds on the machine's monotonic clock, which its ranks share."""

    end: float
    peer: int = -1
    """The other rank of a message."""

    size: int = 0
    """Bytes of a message or collective."""


Events = Sequence[Event]
"""Of one rank, in the order in which they began."""


def steps_of(ranks: Sequence[Events]) -> list[int]:
    """The steps of which every rank has events."""
    common = set.intersection(*({event.step for event in events} for events in ranks)) if ranks else set()
    return sorted(common - {0})


def within(ranks: Sequence[Events], step: int) -> list[list[Event]]:
    """The events of one step."""
    return [[event for event in events if event.step == step] for events in ranks]


def is_action(event: Event) -> bool:
    """Whether an event is a stage's work on a micro-batch."""
    return event.kind == "compute" and event.name[0] in "FBW" and event.name[1:2].isdigit()


def idle_shares(step: Sequence[Events]) -> list[float]:
    """Share of a pipeline's flush, from its first action to its last, in which each rank worked on no micro-batch.

    Args:
        step: one step of the ranks of one pipeline.

    Raises:
        Undefined: there is no pipeline in it.
    """
    actions = [[event for event in events if is_action(event)] for events in step]
    if not all(actions):
        raise Undefined("a step without a pipeline has no bubble")
    length = max(e.end for rank in actions for e in rank) - min(e.start for rank in actions for e in rank)
    return [1.0 - sum(event.end - event.start for event in rank) / length for rank in actions]


def median_idle(ranks: Sequence[Events]) -> list[float]:
    """Each rank's median idle share over the recorded steps.

    Raises:
        Undefined: there is no pipeline.
    """
    steps = [idle_shares(within(ranks, step)) for step in steps_of(ranks)]
    if not steps:
        raise Undefined("no step was recorded")
    return [statistics.median(values) for values in zip(*steps, strict=True)]


def replayed(schedule: Schedule, ranks: Sequence[Events]) -> Timeline:
    """Plays a schedule with the time that each kind of action took alone: only the schedule's own bubble is left.

    Ranks that share cores, or two halves of one, hold each other up in ways that depend on who waits when; an action's
    time during training, on the wall or of the processor, is then not its own. Of the times alone the shortest counts:
    what else the machine does can only lengthen them.

    Args:
        schedule: what the ranks executed.
        ranks: of one pipeline, stage by stage.

    Raises:
        Undefined: nothing was recorded.
    """
    seconds: dict[tuple[int, str, str], list[float]] = {}
    for rank, events in enumerate(ranks):
        for event in events:
            if event.kind == "alone":
                kind, chunk = event.name[0], event.name.partition(".")[2]
                seconds.setdefault((rank, kind, chunk), []).append(event.end - event.start)
    durations = {key: min(values) for key, values in seconds.items()}
    if not durations:
        raise Undefined("no stage's work was recorded")

    def duration(rank: int, action: Action) -> float:
        return durations[rank, action.kind, str(action).partition(".")[2]]

    return replay(schedule, duration=duration)


def under_way(step: Sequence[Events], rank: int) -> list[Interval]:
    """When something was on its way to a rank, or the rank was in a collective.

    A message is under way from when its sender hands it over until it was received; that a receiver waits for what was
    not sent yet is the schedule's bubble and not communication. Messages between two ranks keep their order.

    Args:
        step: one step of all ranks, by their number.
        rank: whose communication.
    """
    sent: dict[int, list[Event]] = {}
    for peer, events in enumerate(step):
        sent[peer] = [event for event in events if event.kind == "send" and event.peer == rank]
    found = []
    for event in step[rank]:
        if event.kind == "receive" and sent.get(event.peer):
            found.append((min(sent[event.peer].pop(0).start, event.end), event.end))
        elif event.kind in ("collective", "send"):
            found.append((event.start, event.end))
    return found


def exposure(step: Sequence[Events], rank: int) -> Exposure:
    """A rank's communication in a step, and how much of it computing hid."""
    compute = [(event.start, event.end) for event in step[rank] if event.kind == "compute"]
    return exposed(compute, under_way(step, rank))


def slowest(ranks: Sequence[Events], peers: Iterable[Sequence[int]], factor: float) -> tuple[int, float] | None:
    """The rank that holds up others of its kind.

    Args:
        ranks: events of all ranks.
        peers: groups of ranks that do the same work.
        factor: how many times as long as the fastest of its group a rank must compute to be named.

    Returns:
        The rank and its factor; None where all keep step.
    """
    worst: tuple[int, float] | None = None
    for group in peers:
        times = {rank: _typical_compute(ranks[rank]) for rank in group}
        fastest = min(times.values(), default=0.0)
        for rank, seconds in times.items():
            ratio = seconds / fastest if fastest > 0 else 1.0
            if ratio > factor and (worst is None or ratio > worst[1]):
                worst = rank, ratio
    return worst


def _typical_compute(events: Events) -> float:
    steps: dict[int, float] = {}
    for event in events:
        if event.kind == "compute":
            steps[event.step] = steps.get(event.step, 0.0) + event.end - event.start
    return statistics.median(steps.values()) if steps else 0.0
