"""Screens a time against the runs that were approved on the same kind of machine.

Runs differ by more than the steps inside one: another placement, another neighbour, another clock. What matters is
therefore the spread *between* runs, and a new run is suspicious when it falls outside the interval in which the next
run is to be expected. Steps inside a run are never counted as runs.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.gate.compare import compare
from harness.gate.policy import Policy
from harness.gate.verdict import Status, Verdict
from harness.metrics.registry import Metric

CONFIDENCE = 0.99
"""One-sided: of a hundred runs of unchanged code, one is expected beyond the interval."""

CLEARED = 0.985
"""One-sided: of code that got worse by the floor, so large a share is not taken for unchanged by the screen alone."""

PRIOR_SPREAD = 0.05
"""Between-run standard deviation, as a share, that is assumed of a machine nobody has measured."""

PRIOR_RUNS = 3
"""How many runs' worth that assumption weighs."""


@dataclass(frozen=True)
class Interval:
    """Where the next run's value is expected."""

    center: float
    low: float
    high: float
    runs: int
    recent: int = 0
    """Further runs that told of the spread."""

    def __str__(self) -> str:
        known = f"{self.runs} approved run{'s' * (self.runs != 1)}"
        if self.recent:
            known += f" and {self.recent} recent one{'s' * (self.recent != 1)}"
        return f"{self.low:.6g} to {self.high:.6g}, expected after {known}"


def prediction_interval(
    samples: Sequence[float], confidence: float = CONFIDENCE, recent: Sequence[float] = ()
) -> Interval:
    """The interval that one further run of unchanged code stays within, on each side with ``confidence``.

    On the logarithms of the values, because a busy machine stretches times by a factor: mean ± t·s·√(1 + 1/n), where s²
    pools the observed variance with ``PRIOR_RUNS`` runs of the assumed one (Gelman et al., «Bayesian Data Analysis»,
    section 3.3), so that the interval is wide after one run and narrows as runs are approved.

    Recent runs tell of the spread, never of the center: if they moved it, many small slowdowns in a row would pass.

    Args:
        samples: one positive value a run, at least one.
        confidence: of each side.
        recent: positive values of runs that passed since, around a center of their own.

    Raises:
        ValueError: there is no sample, or one is not positive.
    """
    from scipy.special import stdtrit  # a tenth of a second that collection need not spend

    if not samples or min(samples) <= 0:
        raise ValueError(f"a prediction needs positive samples, not {list(samples)!r}")
    logs = [math.log(sample) for sample in samples]
    runs = len(logs)
    mean = statistics.fmean(logs)
    since = [math.log(value) for value in recent if value > 0]
    squares = _squares(logs) + _squares(since) + PRIOR_RUNS * PRIOR_SPREAD**2
    freedom = PRIOR_RUNS + (runs - 1) + max(0, len(since) - 1)
    half = float(stdtrit(freedom, confidence)) * math.sqrt(squares / freedom * (1 + 1 / runs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), runs, len(since))


def _squares(logs: Sequence[float]) -> float:
    mean = statistics.fmean(logs) if logs else 0.0
    return math.fsum((log - mean) ** 2 for log in logs)


def rules_out_regression(
    metric: Metric, value: float | None, samples: Sequence[float], policy: Policy, recent: Sequence[float] = ()
) -> bool:
    """Whether one run alone shows that the code did not get worse by the policy's floor.

    It does when a run of code that got worse by the floor would hardly ever have come out as good as ``value``. With
    nothing approved, or a value that is not finite, nothing is ruled out; one of zero is compared as it is.
    """
    if not samples or value is None or not math.isfinite(value):
        return False
    if min(value, *samples) <= 0:
        return compare(metric, value, statistics.median(samples), policy).status is Status.PASS
    interval = prediction_interval(samples, CLEARED, recent)
    worse = math.log(value / interval.center) * (-1 if metric.direction == "higher" else 1)
    floor = math.log1p(max(policy.relative, policy.absolute / interval.center))
    return worse + math.log(interval.high / interval.center) < floor


def screen(
    metric: Metric, value: float | None, samples: Sequence[float], policy: Policy, recent: Sequence[float] = ()
) -> Verdict:
    """Judges one time of this machine.

    Args:
        metric: gives direction and unit.
        value: what the run measured; None where it is missing.
        samples: one value a run that was approved on this machine; none where nothing was.
        recent: values of runs that passed since; they tell of the spread alone.
        policy: its tolerances are floors: a change within them is none, however little the runs scattered.

    Returns:
        The verdict of ``compare`` against the center of the samples, but PASS inside the prediction interval.
    """
    if not samples or value is None or not math.isfinite(value) or min(value, *samples) <= 0:
        return compare(metric, value, statistics.median(samples) if samples else None, policy)
    interval = prediction_interval(samples, recent=recent)
    verdict = compare(metric, value, interval.center, policy)
    if verdict.status is Status.PASS:
        return verdict
    if interval.low <= value <= interval.high:
        return verdict.model_copy(update={"status": Status.PASS, "reason": f"within {interval}"})
    return verdict.model_copy(update={"reason": f"{verdict.reason}; outside {interval}"})
