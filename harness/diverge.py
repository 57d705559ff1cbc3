"""Finds where two runs part: the first step, rank and layer, and by how much. Pure."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import ResultsError
from harness.metrics.sketch import distance
from harness.trace import KINDS, Kind, Layer, Piece, RankStep, Trace

ROUNDING = 1e-5
"""Relative distance that another order of summation may make."""

Held = list[tuple[int, Piece]]
"""Ranks, and what each holds."""


@dataclass(frozen=True)
class Difference:
    """How far two runs are from each other at one place."""

    step: int
    kind: Kind
    name: str
    rank: int
    """Of the second run."""

    row: int | None
    """Of the batch; None for a parameter or its gradient."""

    relative: float
    """Distance divided by the larger norm; infinite where one is no number, 0 where bits are equal. Of tokens, 1."""

    norms: tuple[float, float]

    def __str__(self) -> str:
        row = "" if self.row is None else f", row {self.row} of the batch"
        named = "the batch" if self.kind == "rows" else f"{self.kind} {self.name!r}"
        if self.kind == "rows":
            return f"step {self.step}: {named}{row}, rank {self.rank}: other tokens"
        one, other = self.norms
        return (
            f"step {self.step}: {named}{row}, rank {self.rank}: relative distance {self.relative:.3g} "
            f"(norms {one:.6g} and {other:.6g})"
        )


@dataclass(frozen=True)
class Comparison:
    """Two runs, side by side."""

    steps: list[int]
    """That both traced."""

    parting: Difference | None
    """The first place where they are further apart than rounding explains."""

    first_bits: Difference | None
    """The first place that is not equal in every bit."""

    alone: list[str]
    """Layers that one of the runs alone traced at a step that both did: they were compared with nothing."""

    layers: list[Difference]
    """The largest difference of each layer at the step of the parting, or of the first bits, in order."""


def compare(one: Trace, other: Trace, tolerance: float = ROUNDING) -> Comparison:
    """Compares two traces, whatever layouts, modes or versions made them.

    Within a step, rows come first, then the parameters that the step begins with, then activations forward, then
    gradients backward: what comes first explains what comes after.

    Args:
        one: the first run's.
        other: the second's.
        tolerance: relative distance beyond which they part.

    Raises:
        ResultsError: they have no traced step, or no layer, in common.
    """
    steps = sorted(one.keys() & other.keys())
    if not steps:
        raise ResultsError(
            f"the runs traced no step in common, {_few(sorted(one))} and {_few(sorted(other))}; use one trace_every"
        )
    first_bits = None
    compared = False
    layers: list[Difference] = []
    alone: dict[str, None] = {}
    for step in steps:
        alone |= dict.fromkeys(_alone(one[step], other[step]))
        found = _step(one[step], other[step])
        compared = compared or bool(found)
        bits = next((each for each in found if each.relative > 0), None)
        if bits and first_bits is None:
            first_bits, layers = bits, _by_layer(found)
        parting = next((each for each in found if not each.relative <= tolerance), None)
        if parting:
            return Comparison(steps, parting, first_bits, list(alone), _by_layer(found))
    if not compared:
        raise ResultsError("the runs have no layer in common: they trained different models")
    return Comparison(steps, None, first_bits, list(alone), layers)


def _alone(one: Sequence[RankStep], other: Sequence[RankStep]) -> list[str]:
    """Layers, and rows of them, that one side alone holds."""
    found = []
    for kind in KINDS:
        mine, theirs = _named(one, kind), _named(other, kind)
        found += [f"{kind} {name!r}" for name in mine.keys() ^ theirs.keys()]
        for name in mine.keys() & theirs.keys():
            if kind in ("rows", "activation") and _places(mine[name]).keys() != _places(theirs[name]).keys():
                found.append(f"rows of {kind} {name!r}")
    return sorted(found)


def _step(one: Sequence[RankStep], other: Sequence[RankStep]) -> list[Difference]:
    step = one[0].step
    found = []
    for kind in KINDS:
        mine, theirs = _named(one, kind), _named(other, kind)
        names = [name for name in mine if name in theirs]
        for name in reversed(names) if kind == "gradient" else names:
            found += _layer(step, kind, name, mine[name], theirs[name])
    return found


def _named(ranks: Sequence[RankStep], kind: Kind) -> dict[str, list[tuple[int, Layer]]]:
    """Layers of a kind by name, in the order of the model: chunks of its stages are interleaved."""
    found: dict[str, list[tuple[int, Layer]]] = {}
    for each in ranks:
        for layer in each.layers:
            if layer.kind == kind:
                found.setdefault(layer.name, []).append((each.rank, layer))
    if not any(_BLOCK.match(name) for name in found):
        return found
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


_BLOCK = re.compile(r"blocks\.(\d+)")


def _order(name: str) -> tuple[int, int]:
    block = _BLOCK.match(name)
    return (1, int(block[1])) if block else (0 if name.startswith("embedding") else 2, 0)


def _layer(
    step: int, kind: Kind, name: str, one: list[tuple[int, Layer]], other: list[tuple[int, Layer]]
) -> list[Difference]:
    is_row = kind in ("rows", "activation")
    shards = {layer.shards for _, layer in (*one, *other)}
    mine, theirs = (_whole(side) if len(shards) > 1 else _places(side) for side in (one, other))
    found = []
    for place in sorted(mine.keys() & theirs.keys()):
        ours = dict(mine[place])
        for rank, piece in theirs[place]:
            # A copy on the same rank of an equal layout, else the first that there is.
            against = ours.get(rank, mine[place][0][1])
            relative = relative_distance(against, piece)
            found.append(
                Difference(step, kind, name, rank, place if is_row else None, relative, (against.norm, piece.norm))
            )
    return found


def _places(side: list[tuple[int, Layer]]) -> dict[int, Held]:
    found: dict[int, Held] = {}
    for rank, layer in side:
        for piece in layer.pieces:
            found.setdefault(piece.place, []).append((rank, piece))
    return found


def _whole(side: list[tuple[int, Layer]]) -> dict[int, Held]:
    """The whole of what is cut over ranks, by the first rank that holds a part; its digest says nothing."""
    parts = [held[0] for _, held in sorted(_places(side).items())]
    if len(parts) == 1:
        return {0: parts}
    norm = math.sqrt(math.fsum(piece.norm**2 for _, piece in parts))
    sketch = [math.fsum(values) for values in zip(*(piece.sketch for _, piece in parts), strict=True)]
    return {0: [(parts[0][0], Piece(place=0, digest=-1, norm=norm, sketch=sketch))]}


def relative_distance(one: Piece, other: Piece) -> float:
    """0 for equal bits; infinite where one is no number and the other is."""
    if one.digest == other.digest and one.digest >= 0:
        return 0.0
    if not one.sketch or not other.sketch:
        return 1.0
    if not (math.isfinite(one.norm) and math.isfinite(other.norm)):
        return math.inf
    return distance(one.sketch, other.sketch) / (max(one.norm, other.norm) or 1.0)


def _by_layer(differences: Sequence[Difference]) -> list[Difference]:
    largest: dict[tuple[Kind, str], Difference] = {}
    for each in differences:
        known = largest.get((each.kind, each.name))
        if known is None or each.relative > known.relative:
            largest[each.kind, each.name] = each
    return list(largest.values())


def _few(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps[:5])) + (" …" if len(steps) > 5 else "")
