"""``harness selftest``: plants faults into real runs on this machine and says what the gate caught."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from harness.devices import find
from harness.errors import HarnessError
from harness.faults import Fault
from harness.gate.baseline import Record, candidate
from harness.gate.confirm import Side, confirm, suspicious
from harness.gate.judge import judge
from harness.gate.policy import Overrides, find_metric, resolve
from harness.gate.power import seen_by_pairs, seen_by_screen
from harness.gate.verdict import Status, Verdict
from harness.launch.code import Code
from harness.layout import Layout
from harness.measure import measure
from harness.metrics.registry import Scope
from harness.run import Run
from harness.scenario import Scenario

SLOWDOWNS = (0.02, 0.05, 0.1, 0.2)
MEMORY, DROPPED = "memory", "dropped_reduction"
PLANTED = {
    MEMORY: {"peak_memory"},
    "learning_rate=1.1": {"learning_rate", "update_norm"},
    "nan=3": {"loss", "grad_norm"},
    "degenerate_generator": {"distinct_2", "distinct_3", "repetition"},
    DROPPED: {"grad_norm", "diverged_replicas"},
}
"""Fault → metrics that must turn red, whatever the machine. How much memory, the tolerance and the peak say."""

TIME = "step_time"


@dataclass(frozen=True)
class Finding:
    """One planted fault, or the null runs, and what the gate said."""

    planted: str
    claimed: bool
    """Whether the gate claims to catch it on this machine."""

    caught: bool
    outcome: str

    @property
    def broken(self) -> bool:
        """Whether a claim does not hold."""
        return self.claimed and not self.caught


@dataclass(frozen=True)
class Bench:
    """Where the selftest trains."""

    hardware: str
    root: Path
    folder: Path
    policy: Overrides
    """Of the project: its gate is tested, not one with other tolerances."""

    def run(self, scenario: Scenario, fault: str | None = None) -> Run:
        """Trains once.

        Raises:
            LaunchError: a rank failed.
        """
        planted = Fault.parse(fault) if fault else None
        return measure(scenario, self.hardware, Code(self.root), self.folder / "run", fault=planted)


def selftest(bench: Bench, scenario: Scenario, nulls: Sequence[Run], confirming: bool) -> Iterator[Finding]:
    """One finding after the other, as they come.

    Args:
        bench: where to train.
        scenario: what.
        nulls: runs of it without a fault, at least three; they are the baseline.
        confirming: whether slowdowns that the screen can't tell are run in turn with the base, which takes minutes.

    Raises:
        LaunchError: a run failed.
    """
    yield _false_alarms(nulls, bench.policy)
    baseline = _baseline(nulls)
    for fault, metrics in PLANTED.items():
        planted = f"{MEMORY}={_noticeable(nulls[0], bench.policy)}" if fault == MEMORY else fault
        trained, judged_by = scenario, baseline
        if fault == DROPPED:
            if scenario.batch % (2 * scenario.accumulation) or find(bench.hardware).count < 2:
                yield Finding(fault, False, False, "not planted: it needs two ranks and an even batch")
                continue
            trained = scenario.replace(layout=Layout(dp=2), samples=0)
            judged_by = _baseline([bench.run(trained)])
        if not Fault.parse(planted).applies(trained):
            yield Finding(fault, False, False, "not planted: it has no effect in this scenario")
            continue
        yield _number(planted, metrics, bench.run(trained, planted), judged_by, bench.policy)
    for slowdown in SLOWDOWNS:
        yield _slowdown(slowdown, bench, scenario, nulls, confirming)


def _noticeable(run: Run, policy: Overrides) -> int:
    """MiB that are twice what the tolerance of peak memory lets pass."""
    peak, allowed = run.metrics.get("peak_memory", 0.0), resolve(find_metric("peak_memory"), policy)
    return max(64, math.ceil(2 * max(allowed.relative * peak, allowed.absolute)))


def _baseline(runs: Sequence[Run]) -> Record:
    """What approving all these runs would store."""
    first = runs[0]
    numbers = {name: value for name, value in first.metrics.items() if find_metric(name).scope != "machine"}
    times = {name: value for name, value in first.metrics.items() if name not in numbers}
    record = candidate(first, numbers, first.curves, times)
    for name in times:
        record.machines[first.machine].metrics[name] = [run.metrics[name] for run in runs]
    return record


def _verdicts(run: Run, baseline: Record, policy: Overrides) -> Mapping[str, Verdict]:
    """By metric, all of them gating: the lane says who is told, not what is seen."""
    gating = {scope: {"lane": "gating"} for scope in get_args(Scope)}
    return {verdict.metric: verdict for verdict in judge(_baseline([run]), run, baseline, None, policy, gating)}


def _false_alarms(nulls: Sequence[Run], policy: Overrides) -> Finding:
    """Each null run against the others; one alarm is chance, two are a gate that cries wolf."""
    alarmed = []
    for run in nulls:
        verdicts = _verdicts(run, _baseline([other for other in nulls if other is not run]), policy).values()
        alarmed.append(sorted(v.metric for v in verdicts if v.status is Status.REGRESSED))
    runs = [names for names in alarmed if names]
    what = f" ({', '.join(sorted(set(itertools.chain(*runs))))})" if runs else ""
    return Finding("nothing", True, len(runs) < 2, f"{len(runs)} false alarm(s) in {len(nulls)} runs{what}")


def _number(fault: str, metrics: set[str], run: Run, baseline: Record, policy: Overrides) -> Finding:
    red = {
        name
        for name, verdict in _verdicts(run, baseline, policy).items()
        if verdict.fails and verdict.scope == "numeric"
    }
    missed = sorted(metrics - red)
    outcome = f"missed in {', '.join(missed)}" if missed else f"red: {', '.join(sorted(red))}"
    return Finding(fault, True, not missed, outcome)


def _slowdown(slowdown: float, bench: Bench, scenario: Scenario, nulls: Sequence[Run], confirming: bool) -> Finding:
    metric = find_metric(TIME)
    policy = resolve(metric, bench.policy)
    samples = [run.metrics[TIME] for run in nulls]
    fault = f"slow_step={slowdown}"
    verdict = _verdicts(bench.run(scenario, fault), _baseline(nulls), bench.policy)[TIME]
    by_screen = slowdown >= seen_by_screen(samples)
    by_pairs = confirming and slowdown >= seen_by_pairs(samples, policy.relative)
    name = f"every step {100 * slowdown:.0f} % slower"
    if verdict.status is Status.REGRESSED or not confirming:
        seen = f"{verdict.status.value} by the screen: {verdict.reason or 'within the floor'}"
        return Finding(name, by_screen or by_pairs, verdict.status is Status.REGRESSED, seen)
    if suspicious(verdict, metric, samples, policy):

        def side(which: Side) -> Run:
            return bench.run(scenario, fault if which == "head" else None)

        (verdict,) = confirm([(verdict, metric, policy)], side, "base")
        return Finding(name, by_pairs, verdict.status is Status.REGRESSED, f"{verdict.status.value}: {verdict.reason}")
    return Finding(name, by_pairs, False, "PASS: the screen ruled it out")


def reach(nulls: Sequence[Run], policy: Overrides) -> str:
    """What the gate claims on this machine, in one line."""
    try:
        samples = [run.metrics[TIME] for run in nulls]
    except KeyError:
        raise HarnessError(f"the scenario has too few steps for a {TIME}; give it more than the warm-up") from None
    floor = resolve(find_metric(TIME), policy).relative
    return (
        f"after {len(nulls)} runs the screen alone claims slowdowns from {100 * seen_by_screen(samples):.0f} %, "
        f"with confirmation from {100 * seen_by_pairs(samples, floor):.0f} %"
    )
