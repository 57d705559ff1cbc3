"""The curves of two trainings, of ours or of others, step by step. Pure."""

import math
from dataclasses import dataclass, replace

from harness.errors import ResultsError
from harness.gate.compare import compare
from harness.gate.policy import Policy
from harness.gate.verdict import Status, Verdict
from harness.metrics.registry import METRICS, Metric
from harness.readers.log import Reading

NOT_COMPARED = {"step_time", "achieved_flops", "loss_scale"}
"""Curves of other trainings that say how fast one was, or nothing."""


@dataclass(frozen=True)
class Compared:
    """One curve of both."""

    name: str
    steps: int
    """That both have."""

    one_alone: int
    other_alone: int
    verdict: Verdict
    """Of the second by the first; ``step`` is a step of the training."""

    largest: float
    """Largest relative difference; infinite where one is no number."""


def compare_readings(one: Reading, other: Reading, relative: float | None, allowed: int) -> list[Compared]:
    """Every curve that both have, worst first.

    Args:
        one: what is compared with.
        other: what is compared.
        relative: tolerance of all curves; None for each metric's own.
        allowed: steps of a curve that may be out of it.

    Raises:
        ResultsError: they have no curve, or no step of one, in common.
    """
    found = []
    for name in sorted((one.curves.keys() & other.curves.keys()) - NOT_COMPARED):
        mine, theirs = one.curves[name], other.curves[name]
        steps = sorted(mine.keys() & theirs.keys())
        if steps:
            found.append(_compared(name, steps, mine, theirs, relative, allowed))
    if not found:
        names = ", ".join(sorted(one.curves)) + " and " + ", ".join(sorted(other.curves))
        raise ResultsError(f"nothing to compare: {names} have no curve with a step in common")
    return sorted(found, key=lambda each: (each.verdict.rank[:2], each.name))


def _compared(
    name: str, steps: list[int], mine: dict[int, float], theirs: dict[int, float], relative: float | None, allowed: int
) -> Compared:
    metric = METRICS.get(name) or Metric(
        name, "", "match", "numeric", METRICS["loss"].relative, digits="float64", curve=True
    )
    policy = Policy(
        relative=metric.relative if relative is None else relative,
        absolute=metric.absolute if relative is None else 0.0,
        deviating_steps=allowed,
    )
    base, values = [mine[step] for step in steps], [theirs[step] for step in steps]
    verdict = compare(metric, values, base, policy, steps)
    return Compared(
        name,
        len(steps),
        len(mine) - len(steps),
        len(theirs) - len(steps),
        verdict,
        max(_difference(a, b) for a, b in zip(base, values, strict=True)),
    )


def _difference(one: float, other: float) -> float:
    if one == other:
        return 0.0
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(other - one) / (abs(one) or abs(other))


def ends(one: Reading, other: Reading) -> tuple[int, int]:
    """The last step of each."""
    first, second = (max(max(curve) for curve in each.curves.values() if curve) for each in (one, other))
    return first, second


def until(reading: Reading, step: int) -> Reading:
    """A reading up to a step."""
    curves = {name: {s: value for s, value in curve.items() if s <= step} for name, curve in reading.curves.items()}
    return replace(reading, curves={name: curve for name, curve in curves.items() if curve})


def status(found: list[Compared], last: tuple[int, int]) -> int:
    """Exit status: 0 where all agree to the end, 1 where a curve deviates, 5 where one is no number.

    Where they agree and one of them ended earlier, nobody knows what it would have come to: 3.
    """
    statuses = {each.verdict.status for each in found}
    if Status.INVALID in statuses:
        return 5
    return 1 if statuses - {Status.PASS} else 3 if last[0] != last[1] else 0
