"""Settles a suspicion by running base and head again, in turn, on one machine.

Two runs next to each other share the machine's mood, so what counts is the ratio within a pair. Pairs are taken
A B B A …, so that a machine that slows down steadily favours neither side. After some pairs, at looks fixed beforehand,
the confidence interval of the median log-ratio says worse, no worse, or not yet. Looks, confidence and bound were
chosen by simulation (``benchmarks/gate_power.py``): at most 1 % false alarms and at least 95 % of slowdowns by the
floor found, where runs differ by 3 %.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.errors import LaunchError
from harness.gate.policy import Policy
from harness.gate.screen import rules_out_regression
from harness.gate.validity import problem
from harness.gate.verdict import Confirmation, Status, Verdict
from harness.metrics.registry import Metric
from harness.run import Run

CONFIDENCE = 0.995
"""Of the two-sided interval at each look."""

LOOKS = (12, 18, 26, 40)
"""Numbers of pairs after which a decision is tried; the last is the bound."""

MOST_ATTEMPTS = 60
"""Pairs that are run at most, those that others disturbed included."""

RESAMPLES = 2000

Side = Literal["base", "head"]


@dataclass(frozen=True)
class RatioInterval:
    """Head divided by base: median of the pairs, and its confidence interval."""

    ratio: float
    low: float
    high: float


def ratio_interval(base: Sequence[float], head: Sequence[float]) -> RatioInterval:
    """The percentile bootstrap interval of the median paired log-ratio (Efron & Tibshirani 1993, chapter 13).

    Args:
        base: positive values, one a pair.
        head: as many.

    Raises:
        ValueError: there is no pair, the numbers differ, or a value is not positive.
    """
    import numpy as np
    from scipy.stats import bootstrap  # a second that collection need not spend

    if not base or len(base) != len(head) or min(*base, *head) <= 0:
        raise ValueError(f"pairs of positive values are needed, not {list(base)!r} and {list(head)!r}")
    logs = np.log(head) - np.log(base)
    center = float(np.median(logs))
    if np.ptp(logs) == 0:
        return RatioInterval(math.exp(center), math.exp(center), math.exp(center))
    interval = bootstrap(
        (logs,), np.median, confidence_level=CONFIDENCE, n_resamples=RESAMPLES, method="percentile", rng=0
    ).confidence_interval
    return RatioInterval(math.exp(center), math.exp(float(interval.low)), math.exp(float(interval.high)))


def decide(metric: Metric, policy: Policy, base: Sequence[float], head: Sequence[float]) -> Status | None:
    """REGRESSED where head is worse for sure, PASS where a change by the floor can be ruled out, None while neither is.

    Args:
        metric: gives the direction, ``lower`` or ``higher``.
        policy: its tolerances are the floor: what is smaller is no regression.
        base: values of one metric, one a pair.
        head: as many.
    """
    interval = ratio_interval(base, head)
    least, most = math.log(interval.low), math.log(interval.high)
    if metric.direction == "higher":
        least, most = -most, -least
    floor = math.log1p(max(policy.relative, policy.absolute / statistics.median(base)))
    if most < floor:
        return Status.PASS
    return Status.REGRESSED if least > 0 else None


@dataclass
class _Question:
    """One metric under suspicion, and the pairs so far."""

    verdict: Verdict
    metric: Metric
    policy: Policy
    base: list[float] = field(default_factory=list)
    head: list[float] = field(default_factory=list)
    disturbed: int = 0
    answer: Status | None = None

    def add(self, runs: Mapping[Side, Run]) -> None:
        """Takes a pair, unless one of its runs measured nothing; decides when it is time to look."""
        if self.answer or len(self.base) == LOOKS[-1]:
            return
        values = [runs[side].metrics.get(self.metric.name, math.nan) for side in ("base", "head")]
        problems = [problem(self.metric, run, self.policy) for run in runs.values()]
        if any(found and found[0] is Status.INVALID for found in problems) or not all(value > 0 for value in values):
            self.disturbed += 1
            return
        self.base.append(values[0])
        self.head.append(values[1])
        if len(self.base) in LOOKS:
            self.look()

    def look(self) -> None:
        """Tries to decide, once there are enough pairs."""
        if not self.answer and len(self.base) >= LOOKS[0]:
            self.answer = decide(self.metric, self.policy, self.base, self.head)

    def settled(self, against: str, failed: str) -> Verdict:
        """The verdict with what the pairs say of it; the first one stays in the confirmation."""
        interval = ratio_interval(self.base, self.head) if self.base else None
        confirmation = Confirmation(
            against=against,
            status=self.verdict.status,
            reason=self.verdict.reason,
            pairs=len(self.base),
            ratio=interval.ratio if interval else None,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            problem=failed,
        )
        shown = f"head / {against} {interval.ratio:.4f} [{interval.low:.4f}, {interval.high:.4f}]" if interval else ""
        pairs = f"{len(self.base)} pairs" + (f", {self.disturbed} more disturbed" if self.disturbed else "")
        if failed and not self.answer:
            status = self.verdict.status if failed.startswith("base") else Status.INVALID
            reason = "; ".join(part for part in (self.verdict.reason, f"not confirmed, because {failed}") if part)
        else:
            status = self.answer or Status.INCONCLUSIVE
            word = {Status.PASS: "no worse", Status.REGRESSED: "worse"}.get(status, "can't be told")
            reason = f"{word}: {shown or 'no undisturbed pair'} over {pairs}; at first {self.verdict.status.value}"
            reason += f" ({self.verdict.reason})" if self.verdict.reason else ""
        return self.verdict.model_copy(update={"status": status, "reason": reason, "confirmation": confirmation})


def suspicious(
    verdict: Verdict, metric: Metric, samples: Sequence[float], policy: Policy, recent: Sequence[float] = ()
) -> bool:
    """Whether a time wants to be run again: it looks worse, was not measured, or may be worse by the floor unseen.

    Args:
        verdict: what the screen said; one that can't fail the test, or was expected to, is let be.
        metric: its metric.
        samples: one value a run that was approved on this machine.
        policy: gives the floor.
        recent: values of runs that passed since.
    """
    if verdict.lane == "advisory" or verdict.status in (Status.XFAIL, Status.XPASS, Status.IMPROVED):
        return False
    return verdict.status is not Status.PASS or not rules_out_regression(metric, verdict.value, samples, policy, recent)


def confirm(
    suspicions: Sequence[tuple[Verdict, Metric, Policy]], measure: Callable[[Side], Run], against: str
) -> list[Verdict]:
    """Runs base and head in turn until every suspicion is settled or the bound is reached.

    Args:
        suspicions: verdicts on times of one run, with their metric and policy.
        measure: runs one side once.
        against: how the base is called in reports.

    Returns:
        A verdict for each suspicion, in their order: REGRESSED, PASS or INCONCLUSIVE by the pairs; as it was where the
        base could not be run; INVALID where the head could not.
    """
    questions = [_Question(*suspicion) for suspicion in suspicions]
    failed = ""
    for pair in range(MOST_ATTEMPTS):
        order: tuple[Side, Side] = ("base", "head") if pair % 2 == 0 else ("head", "base")
        runs: dict[Side, Run] = {}
        try:
            for side in order:
                runs[side] = measure(side)
        except LaunchError as error:
            failed = f"{next(side for side in order if side not in runs)} failed: {error}"
            break
        for question in questions:
            question.add(runs)
        if all(question.answer or len(question.base) == LOOKS[-1] for question in questions):
            break
    for question in questions:
        question.look()
    return [question.settled(against, failed) for question in questions]
