"""In which order each rank of a pipeline works."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.errors import ScenarioError

Kind = Literal["F", "B", "W"]
"""Forward; backward, or, where it is split, its part for the inputs; the part for the weights."""


@dataclass(frozen=True, order=True)
class Action:
    """One micro-batch through one chunk, in one direction."""

    kind: Kind
    micro_batch: int
    chunk: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.micro_batch}" + (f".{self.chunk}" if self.chunk else "")


@dataclass(frozen=True)
class Schedule:
    """What each rank does, in order. When it does so, a replay says.

    The model is cut into ``stages · chunks`` parts, dealt out in turn: chunk ``c`` of rank ``r`` is part
    ``c · stages + r``, so that one chunk a rank is the plain pipeline.
    """

    name: str
    stages: int
    """Ranks of the pipeline."""

    micro_batches: int
    chunks: int
    """Parts of the model on each rank."""

    orders: tuple[tuple[Action, ...], ...]
    """One order a rank."""

    @property
    def parts(self) -> int:
        """Parts of the model over all ranks."""
        return self.stages * self.chunks

    @property
    def splits_backward(self) -> bool:
        """Whether the gradients of weights are an action of their own."""
        return any(action.kind == "W" for action in self.orders[0])

    def part(self, rank: int, chunk: int) -> int:
        """Which part of the model a chunk is."""
        return chunk * self.stages + rank

    def place(self, part: int) -> tuple[int, int]:
        """The (rank, chunk) of a part of the model."""
        return part % self.stages, part // self.stages

    def needs(self, rank: int, action: Action) -> Iterator[tuple[int, Action]]:
        """What must be done before: (rank, action) pairs, the rank's own ones among them."""
        part = self.part(rank, action.chunk)
        if action.kind == "F" and part > 0:
            before, chunk = self.place(part - 1)
            yield before, Action("F", action.micro_batch, chunk)
        if action.kind == "B":
            yield rank, Action("F", action.micro_batch, action.chunk)
            if part < self.parts - 1:
                after, chunk = self.place(part + 1)
                yield after, Action("B", action.micro_batch, chunk)
        if action.kind == "W":
            yield rank, Action("B", action.micro_batch, action.chunk)

    def in_flight(self, rank: int) -> int:
        """Most micro-batches whose activations a rank holds at once, counted in chunks.

        From the forward to the end of the backward; where that is split, to its part for the weights.
        """
        last = "W" if self.splits_backward else "B"
        held = most = 0
        for action in self.orders[rank]:
            held += (action.kind == "F") - (action.kind == last)
            most = max(most, held)
        return most


def gpipe(stages: int, micro_batches: int) -> Schedule:
    """All micro-batches forward, then all backward (Huang et al. 2019, «GPipe»).

    Raises:
        ScenarioError: a number is no whole number of at least 1.
    """
    _check(stages, micro_batches)
    order = (*_all("F", micro_batches), *_all("B", micro_batches))
    return Schedule("gpipe", stages, micro_batches, 1, (order,) * stages)


def one_f_one_b(stages: int, micro_batches: int) -> Schedule:
    """One forward, one backward in turn, after a warm-up of forwards that shortens from rank to rank.

    At most ``stages - rank`` micro-batches are in flight (Narayanan et al. 2021, «Memory-Efficient Pipeline-Parallel
    DNN Training», PipeDream-Flush).

    Raises:
        ScenarioError: a number is no whole number of at least 1.
    """
    _check(stages, micro_batches)
    forwards, backwards = _all("F", micro_batches), _all("B", micro_batches)
    orders = tuple(_alternating(forwards, backwards, stages - rank - 1) for rank in range(stages))
    return Schedule("1f1b", stages, micro_batches, 1, orders)


def interleaved(stages: int, micro_batches: int, chunks: int) -> Schedule:
    """1F1B over several chunks a rank, which divides the bubble by their number.

    Micro-batches go in groups of ``stages`` through chunk after chunk (Narayanan et al. 2021, «Efficient Large-Scale
    Language Model Training on GPU Clusters», section 2.2). Where the last group is smaller, its missing micro-batches
    leave gaps in the order of a full one, which then waits more.

    Raises:
        ScenarioError: a number is no whole number of at least 1, or there are fewer than two chunks.
    """
    _check(stages, micro_batches)
    if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks < 2:
        raise ScenarioError(f"chunks={chunks!r}: interleaving needs at least two chunks a rank; use 1f1b for one")
    groups = [range(first, first + stages) for first in range(0, micro_batches, stages)]
    forwards = [Action("F", m, c) for group in groups for c in range(chunks) for m in group]
    backwards = [Action("B", m, c) for group in groups for c in reversed(range(chunks)) for m in group]
    orders = []
    for rank in range(stages):
        warmup = 2 * (stages - rank - 1) + (chunks - 1) * stages
        full = _alternating(forwards, backwards, warmup)
        orders.append(tuple(action for action in full if action.micro_batch < micro_batches))
    return Schedule("interleaved", stages, micro_batches, chunks, tuple(orders))


def zero_bubble(stages: int, micro_batches: int) -> Schedule:
    """1F1B with the backward split, the gradients of weights filling what would be idle.

    The first of the schedules of Qi et al. 2023, «Zero Bubble Pipeline Parallelism» (ZB-H1): no rank holds more
    micro-batches than the first one does under 1F1B, and with equal times for F, B and W a bubble of ``stages - 1``
    such times is left of 1F1B's ``3 · (stages - 1)``. Rank ``r`` puts the weights of ``r`` micro-batches off, so that
    they fill its wait for the last backwards.

    Raises:
        ScenarioError: a number is no whole number of at least 1.
    """
    _check(stages, micro_batches)
    orders = []
    for rank, plain in enumerate(one_f_one_b(stages, micro_batches).orders):
        order: list[Action] = []
        for action in plain:
            order.append(action)
            if action.kind == "B" and action.micro_batch >= rank:
                order.append(Action("W", action.micro_batch - rank))
        order += [Action("W", m) for m in range(max(0, micro_batches - rank), micro_batches)]
        orders.append(tuple(order))
    return Schedule("zero bubble", stages, micro_batches, 1, tuple(orders))


def _check(stages: int, micro_batches: int) -> None:
    for name, value in (("stages", stages), ("micro_batches", micro_batches)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ScenarioError(f"{name}={value!r} must be a whole number of at least 1")


def _all(kind: Kind, micro_batches: int) -> list[Action]:
    return [Action(kind, m) for m in range(micro_batches)]


def _alternating(forwards: list[Action], backwards: list[Action], warmup: int) -> tuple[Action, ...]:
    """Some forwards, then one of each in turn, then what backwards are left."""
    warmup = min(warmup, len(forwards))
    steady = zip(forwards[warmup:], backwards, strict=False)
    rest = backwards[len(forwards) - warmup :]
    return (*forwards[:warmup], *(action for pair in steady for action in pair), *rest)
