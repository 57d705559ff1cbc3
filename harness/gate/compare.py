"""Compares one scalar or curve with its baseline.

The rule: a point is unchanged when |value − baseline| ≤ max(relative · |baseline|, absolute). A changed point is worse
or better by the metric's direction; under ``match`` every change is worse. A scalar is a curve of one point of which
none may deviate; a curve regresses when more points are worse than its policy allows, counted as integers.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness.errors import PolicyError
from harness.gate.policy import Policy
from harness.gate.verdict import Status, Verdict
from harness.metrics.registry import Metric

Values = float | Sequence[float]

EARLY = 0.25
"""Share of a curve's steps that count as its start: initialization, data order and arithmetic show there; what shows
only later has built up."""


def compare(
    metric: Metric,
    value: Values | None,
    baseline: Values | None,
    policy: Policy,
    steps: Sequence[int] | None = None,
) -> Verdict:
    """Judges one metric.

    Args:
        metric: gives direction, unit and number format.
        value: what the run measured; None where it is missing.
        baseline: what was approved; None where nothing was.
        policy: the tolerance.
        steps: of a curve, the steps that its values belong to; None for 1, 2, 3, …

    Returns:
        INVALID for a missing or non-finite value, a curve of another length, or a non-finite baseline; NO_BASELINE;
        else PASS, IMPROVED or REGRESSED. A curve's verdict names its first deviating step.

    Raises:
        PolicyError: the tolerance is finer than the number format of the baseline.
    """
    if value is None:
        last = None if baseline is None else float(_points(baseline)[-1]) if len(_points(baseline)) else None
        return _verdict(metric, policy, Status.INVALID, "missing: the run has no such value", baseline=last)
    actual = _points(value)
    is_curve = not np.isscalar(value) and np.ndim(value) == 1
    bad = np.flatnonzero(~np.isfinite(actual))
    if bad.size:
        step = _number(steps, int(bad[0])) if is_curve else None
        where = f" at step {step}" if is_curve else ""
        reason = f"non-finite ({actual[bad[0]]}){where}"
        return _verdict(metric, policy, Status.INVALID, reason, value=float(actual[bad[0]]), step=step)
    if not actual.size:
        return _verdict(metric, policy, Status.INVALID, "empty: the run measured no step")
    if baseline is None:
        step = _number(steps, len(actual) - 1) if is_curve else None
        return _verdict(metric, policy, Status.NO_BASELINE, "nothing approved yet", value=float(actual[-1]), step=step)
    expected = _points(baseline)
    if len(expected) != len(actual):
        reason = f"wrong length: {len(actual)} steps against {len(expected)} in the baseline (another scenario?)"
        return _verdict(metric, policy, Status.INVALID, reason)
    if not np.isfinite(expected).all():
        return _verdict(metric, policy, Status.INVALID, "the baseline is non-finite; approve a new one")
    return _judge(metric, policy, actual, expected, is_curve, steps)


def _judge(
    metric: Metric,
    policy: Policy,
    actual: npt.NDArray[np.float64],
    expected: npt.NDArray[np.float64],
    is_curve: bool,
    steps: Sequence[int] | None,
) -> Verdict:
    tolerance = np.maximum(policy.relative * np.abs(expected), policy.absolute)
    _refuse_too_fine(metric, policy, expected, tolerance)
    difference = actual - expected
    changed = np.abs(difference) > tolerance
    good_sign = {"higher": 1.0, "lower": -1.0, "match": 0.0}[metric.direction]
    better = changed & (difference * good_sign > 0)
    worse = changed & ~better
    allowed = policy.deviating_steps if is_curve else 0
    if worse.sum() > allowed:
        status, points = Status.REGRESSED, worse
    elif better.sum() > allowed:
        status, points = Status.IMPROVED, better
    else:
        status, points = Status.PASS, worse
    first = int(np.flatnonzero(points)[0]) if status is not Status.PASS else len(actual) - 1
    verdict = _verdict(
        metric,
        policy,
        status,
        _reason(status, policy, points, first, _number(steps, first) if is_curve else None),
        value=float(actual[first]),
        baseline=float(expected[first]),
        step=_number(steps, first) if is_curve else None,
    )
    verdict.relative, verdict.absolute = policy.relative, policy.absolute
    if is_curve:
        verdict.approved, verdict.steps = expected.tolist(), list(steps or ())
    if is_curve and status is Status.REGRESSED:
        verdict.divergence = "early" if first < EARLY * len(actual) else "late"
    return verdict


def _reason(status: Status, policy: Policy, points: npt.NDArray[np.bool_], first: int, step: int | None) -> str:
    if status is Status.PASS:
        return ""
    exact = policy.relative == policy.absolute == 0
    within = "exact" if exact else f"tolerance {policy.relative:g} relative, {policy.absolute:g} absolute"
    if step is not None:
        course = _course(points, first) if status is Status.REGRESSED else ""
        deviate = f"{points.sum()} of {len(points)} steps deviate, first at step {step}"
        return f"{course}{deviate}; {policy.deviating_steps} allowed, {within}"
    return f"beyond {within}" + ("; approve it to tighten the baseline" if status is Status.IMPROVED else "")


def _course(points: npt.NDArray[np.bool_], first: int) -> str:
    """How a curve left its band: what is wrong from the start has other causes than what builds up."""
    when = "early divergence" if first < EARLY * len(points) else "late drift"
    return f"{when}{'' if points[-1] else ', back in the band at the end'}: "


def _refuse_too_fine(
    metric: Metric, policy: Policy, expected: npt.NDArray[np.float64], tolerance: npt.NDArray[np.float64]
) -> None:
    if metric.digits == "integer":
        return
    spacing = np.spacing(np.abs(expected).astype(metric.digits)).astype(np.float64)
    finer = (tolerance > 0) & (tolerance < spacing)
    if finer.any():
        at = int(np.flatnonzero(finer)[0])
        raise PolicyError(
            f"{metric.name}: tolerance {tolerance[at]:.3g} is finer than {metric.digits} can tell at "
            f"{expected[at]:.8g} (spacing {spacing[at]:.3g}); use 0 for exact, or at least the spacing"
        )


def _number(steps: Sequence[int] | None, index: int) -> int:
    return steps[index] if steps else index + 1


def _points(values: Values) -> npt.NDArray[np.float64]:
    return np.atleast_1d(np.asarray(values, np.float64))


def _verdict(
    metric: Metric,
    policy: Policy,
    status: Status,
    reason: str,
    value: float | None = None,
    baseline: float | None = None,
    step: int | None = None,
) -> Verdict:
    return Verdict(
        metric=metric.name,
        status=status,
        reason=reason,
        unit=metric.unit,
        scope=metric.scope,
        lane=policy.lane,
        value=value,
        baseline=baseline,
        step=step,
    )
