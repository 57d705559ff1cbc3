"""Proposes tolerances from runs of unchanged code. Pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.gate.policy import Overrides, Policy, find_metric, resolve
from harness.gate.power import spread
from harness.gate.validity import problem
from harness.metrics.registry import Metric
from harness.run import Run

SPREADS = 3.0
"""A proposed floor is so many between-run standard deviations: about one in a thousand unchanged runs exceeds it."""


FEWEST = 3
"""Runs that tell of a spread at all."""


@dataclass(frozen=True)
class Calibration:
    """How one metric scattered over runs of unchanged code, and what follows."""

    metric: Metric
    center: float
    """Median over the runs; of a curve, of its last step."""

    scatter: float
    """Of a time: between-run standard deviation, as a share; infinite where too few runs were properly measured. Of a
    number: largest deviation from the first run, as a share, at any step."""

    policy: Policy
    """In force now."""

    proposal: dict[str, float | bool]
    """Fields of a policy that fit better; empty where the one in force does."""


def calibrate(runs: Sequence[Run], *policies: Overrides) -> list[Calibration]:
    """One calibration for every metric that all runs have.

    A time's floor becomes ``SPREADS`` between-run deviations, rounded up: below that, even a confirmed change would be
    this machine's mood. A number that was the same in every bit may be held to it on this kind of machine; one that was
    not keeps its tolerance, unless it scattered beyond it. Tolerances of numbers are never made tighter elsewhere: they
    leave room for machines that were not measured.

    Args:
        runs: at least three, of one scenario and machine.
        policies: overrides, weakest first.

    Raises:
        ValueError: there are too few runs to tell.
    """
    if len(runs) < FEWEST:
        raise ValueError(f"{len(runs)} runs tell nothing of their spread; {FEWEST} are the least")
    scalars = sorted(set.intersection(*(set(run.metrics) for run in runs)))
    curves = sorted(set.intersection(*(set(run.curves) for run in runs)))
    found = [_scalar(find_metric(name), runs, *policies) for name in scalars]
    return found + [_curve(find_metric(name), [run.curves[name] for run in runs], *policies) for name in curves]


def _scalar(metric: Metric, runs: Sequence[Run], *policies: Overrides) -> Calibration:
    policy = resolve(metric, *policies)
    values = [run.metrics[metric.name] for run in runs]
    center = statistics.median(values)
    if metric.scope != "machine":
        return _number(metric, policy, center, [[value] for value in values])
    times = [run.metrics[metric.name] for run in runs if not problem(metric, run, policy)]
    if len(times) < FEWEST or min(times) <= 0:
        return Calibration(metric, center, math.inf, policy, {})
    center, scatter = statistics.median(times), spread(times)
    floor = round_up(SPREADS * scatter)
    fits = floor <= max(policy.relative, policy.absolute / center)
    return Calibration(metric, center, scatter, policy, {} if fits else {"relative": floor})


def _curve(metric: Metric, curves: list[list[float]], *policies: Overrides) -> Calibration:
    return _number(metric, resolve(metric, *policies), statistics.median(curve[-1] for curve in curves), curves)


def _number(metric: Metric, policy: Policy, center: float, curves: list[list[float]]) -> Calibration:
    first = curves[0]
    pairs = [(value, base) for curve in curves[1:] for value, base in zip(curve, first, strict=True)]
    largest = max(_share(value, base) for value, base in pairs)
    within = all(abs(value - base) <= max(policy.relative * abs(base), policy.absolute) for value, base in pairs)
    proposal: dict[str, float | bool] = {}
    tolerant = policy.relative or policy.absolute
    if not largest and tolerant and not policy.exact and metric.scope == "numeric":
        proposal = {"exact": True}
    elif not within and math.isfinite(largest):
        proposal = {"relative": round_up(SPREADS * largest)}
    return Calibration(metric, center, largest, policy, proposal)


def _share(value: float, base: float) -> float:
    if value == base:
        return 0.0
    return abs(value - base) / abs(base) if base else math.inf


def round_up(value: float) -> float:
    """To two significant digits, never below the value."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    rounded = float(f"{math.ceil(value / unit) * unit:.1e}")
    return rounded if rounded >= value else float(f"{rounded + unit:.1e}")


def as_toml(calibrations: Sequence[Calibration], machine: str, runs: int) -> str:
    """The proposals as they belong into pyproject.toml; empty where there are none."""
    lines = []
    for calibration in calibrations:
        if calibration.proposal:
            lines.append(f"\n[tool.harness.policy.{calibration.metric.name}]")
            lines += [
                f"{name} = {str(value).lower() if isinstance(value, bool) else value}"
                for name, value in calibration.proposal.items()
            ]
    return "\n".join([f"# {runs} runs of unchanged code on {machine}", *lines]) if lines else ""
