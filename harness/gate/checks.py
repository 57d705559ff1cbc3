"""Collects the verdicts of one test and what approving its runs would store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from harness.configuration import Configuration
from harness.errors import PolicyError
from harness.gate.baseline import BaselineFile, Record, candidate
from harness.gate.benchmark import TIME, Benchmark, timed
from harness.gate.confirm import suspicious
from harness.gate.expected import apply
from harness.gate.judge import judge
from harness.gate.policy import Overrides, Policy, check_overrides, find_metric, resolve
from harness.gate.validity import problem
from harness.gate.verdict import Status, Verdict
from harness.metrics.registry import Metric
from harness.run import Run
from harness.scenario import Scenario

Confirm = Callable[[Run, Sequence[tuple[Verdict, Metric, Policy]]], list[Verdict]]
"""A run and what is suspected of it → a verdict for each suspicion."""

Recent = Callable[[str, Run, str], Mapping[str, Sequence[float]]]
"""Label, run and the time of an approval → times of runs that passed since, by metric."""


@dataclass(frozen=True)
class _Checked:
    run: Run
    policies: tuple[Overrides, ...]
    samples: Mapping[str, Sequence[float]]
    """Approved times of its machine, by metric."""

    recent: Mapping[str, Sequence[float]]


class Gate:
    """The ``gate`` fixture. Checks collect; the test fails once, at its end."""

    def __init__(
        self,
        baseline: BaselineFile | None,
        configuration: Configuration,
        nodeid: str,
        recent: Recent = lambda label, run, since: {},
        hardware: str = "cpu",
    ) -> None:
        """Begins to collect.

        Args:
            baseline: what was approved for the test; None where nothing was.
            configuration: the project's.
            nodeid: of the test.
            recent: finds times of runs that passed since an approval.
            hardware: of the test.
        """
        self.hardware = hardware
        self.recent = recent
        self.baseline = baseline
        self.configuration = configuration
        self.nodeid = nodeid
        self.verdicts: list[Verdict] = []
        self.candidates: dict[str, Record] = {}
        self.closed = False
        self._checked: dict[str, _Checked] = {}

    def check(
        self,
        run: Run,
        label: str = "run",
        *,
        only: Iterable[str] | None = None,
        ratios: Mapping[str, float] | None = None,
        policy: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> list[Verdict]:
        """Compares a run with its baseline.

        Args:
            run: what the trainer returned.
            label: names the run among those of one test.
            only: metrics and curves to check; all by default.
            ratios: further values of scope ``ratio``, by metric name (``step_time_ratio`` …).
            policy: tolerances of this test alone, by metric or scope.

        Returns:
            This run's verdicts; those that fail also fail the test.

        Raises:
            PolicyError: a metric is unknown, a tolerance can't be applied, the label was used before, or the test is
                over.
        """
        if self.closed:
            raise PolicyError("the test is over and its verdict given; call gate.check inside the test")
        if label in self.candidates:
            raise PolicyError(f"label {label!r} was checked before in this test; give each run a label of its own")
        check_overrides(policy or {})
        wanted = None if only is None else {find_metric(name).name for name in only} | set(ratios or {})
        policies = (self.configuration.policy, policy or {})
        record = self._candidate(run, wanted, dict(ratios or {}), policies)
        approved = self.baseline.runs.get(label) if self.baseline else None
        times = approved.machines.get(run.machine) if approved else None
        recent = self.recent(label, run, times.approved.when if times and times.approved else "")
        verdicts = [
            self._expected(verdict).model_copy(update={"label": label, "run": run.key})
            for verdict in judge(record, run, approved, wanted, *policies, recent=recent)
        ]
        self.candidates[label] = record
        self._checked[label] = _Checked(run, policies, times.metrics if times else {}, recent)
        self.verdicts += verdicts
        return verdicts

    def check_benchmark(
        self,
        benchmark: Benchmark,
        scenario: Scenario,
        label: str = "benchmark",
        *,
        policy: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> list[Verdict]:
        """Compares what pytest-benchmark timed with its baseline.

        Args:
            benchmark: the ``benchmark`` fixture, after it has timed something.
            scenario: what was timed.
            label: names it among the runs of one test.
            policy: tolerances of this test alone.

        Returns:
            One verdict, INVALID where pytest-benchmark was disabled and timed nothing.

        Raises:
            PolicyError: as ``check``.
        """
        return self.check(timed(benchmark, scenario, self.hardware), label, only=[TIME], policy=policy)

    def settle(self, confirm: Confirm) -> None:
        """Has every suspicious time run again, and takes the verdicts that come of it.

        Args:
            confirm: given a run and its suspicions, returns a verdict for each.
        """
        for label, checked in self._checked.items():
            suspicions = []
            for verdict in self.verdicts:
                # What a benchmark timed can't be had by training again.
                timed_run = verdict.scope == "machine" and verdict.metric != TIME
                if verdict.label == label and timed_run and verdict.value is not None:
                    metric = find_metric(verdict.metric)
                    policy = resolve(metric, *checked.policies)
                    samples, recent = checked.samples.get(metric.name, ()), checked.recent.get(metric.name, ())
                    if suspicious(verdict, metric, samples, policy, recent):
                        suspicions.append((verdict, metric, policy))
            if suspicions:
                settled = [self._expected(verdict) for verdict in confirm(checked.run, suspicions)]
                answers = {verdict.metric: verdict for verdict in settled}
                self.verdicts = [
                    answers.get(v.metric, v) if v.label == label and v.scope == "machine" else v for v in self.verdicts
                ]

    def _expected(self, verdict: Verdict) -> Verdict:
        today = datetime.now(timezone.utc).date()
        return apply(verdict, self.nodeid, self.configuration.expected, today)

    def close(self, complete: bool) -> None:
        """Ends the collecting.

        Args:
            complete: whether the test came to its end; what the baseline holds and the test did not check is then
                INVALID too.
        """
        self.closed = True
        if not complete or not self.verdicts:
            return
        reason = "the baseline holds a run of this label and the test checked none; approve that"
        for label in self.baseline.runs if self.baseline else ():
            if label not in self.candidates:
                self.verdicts.append(Verdict(metric="run", label=label, status=Status.INVALID, reason=reason))

    @property
    def failures(self) -> list[Verdict]:
        """Verdicts that fail the test, worst first."""
        return sorted((v for v in self.verdicts if v.fails), key=lambda v: v.rank)

    def _candidate(
        self, run: Run, wanted: set[str] | None, ratios: dict[str, float], policies: Sequence[Overrides]
    ) -> Record:
        """What approving the run would store: a time that was not properly measured is no candidate."""

        def asked(name: str) -> bool:
            return wanted is None or name in wanted

        scalars = {name: value for name, value in run.metrics.items() if asked(name)}
        measured = {name: value for name, value in scalars.items() if find_metric(name).scope == "machine"}
        metrics = {name: value for name, value in scalars.items() if name not in measured}
        times: dict[str, float | None] = {}
        for name, value in measured.items():
            metric = find_metric(name)
            times[name] = None if problem(metric, run, resolve(metric, *policies)) else value
        for name, value in ratios.items():
            if find_metric(name).scope != "ratio":
                raise PolicyError(f"{name!r} is no ratio; ratios are named <metric>_ratio")
            metrics[name] = value
        curves = {name: values for name, values in run.curves.items() if asked(name)}
        return candidate(run, metrics, curves, times)
