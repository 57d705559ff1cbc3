"""Judges a whole run against the record that was approved for it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from harness.environment import Environment
from harness.errors import ScenarioError
from harness.external import External
from harness.gate.baseline import Record
from harness.gate.compare import compare
from harness.gate.policy import Overrides, Policy, find_metric, resolve
from harness.gate.screen import screen
from harness.gate.validity import problem
from harness.gate.verdict import Status, Verdict
from harness.metrics.registry import Metric
from harness.run import Run, described
from harness.scenario import differences


def judge(
    candidate: Record,
    run: Run,
    record: Record | None,
    only: Iterable[str] | None,
    *policies: Overrides,
    recent: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> list[Verdict]:
    """One verdict for every metric that the run or its baseline has.

    Args:
        candidate: the run's own values, as they would be stored.
        run: the run; gives its machine and what is undefined in it.
        record: the approved values; None where there are none.
        only: the metrics that the test checks; None for all.
        policies: overrides, weakest first.
        recent: times of runs that passed since the approval, by metric.

    Returns:
        Verdicts; a single INVALID one where the baseline belongs to another scenario.
    """
    if record is not None and record.scenario_hash != candidate.scenario_hash:
        return [Verdict(metric="scenario", status=Status.INVALID, reason=_refusal(run, record))]
    verdicts = []
    asked = {*run.undefined, *run.metrics, *run.curves} if only is None else set(only)
    for name in sorted(_names(candidate, run.machine) | _names(record, run.machine) | asked):
        metric = find_metric(name)
        policy = resolve(metric, *policies)
        if metric.scope == "machine" and run.oversubscribed:
            # Allowed, and said; but nothing to fail a test by.
            verdicts.append(_invalid(metric, replace(policy, lane="advisory"), f"not gated: {run.oversubscribed}"))
            continue
        if name in asked and name in run.undefined:
            verdicts.append(_invalid(metric, policy, run.undefined[name]))
            continue
        if only is not None and name not in asked:
            verdicts.append(
                _invalid(metric, policy, "the baseline has it and the test checks it no longer; approve that")
            )
            continue
        if metric.scope == "machine":
            verdicts.append(_judge_time(metric, run, record, policy, recent.get(name, ())))
        else:
            verdicts.append(_judge_number(metric, candidate, run, record, policy))
    if not verdicts:
        verdicts.append(
            Verdict(metric="run", status=Status.INVALID, reason="nothing to compare: no metric was checked")
        )
    return verdicts


def _judge_time(metric: Metric, run: Run, record: Record | None, policy: Policy, recent: Sequence[float]) -> Verdict:
    samples = _times(record, run.machine).get(metric.name, [])
    verdict = screen(metric, run.metrics.get(metric.name), samples, policy, recent)
    found = problem(metric, run, policy)
    if found and verdict.status is not Status.INVALID:
        status, reason = found
        if status is Status.INVALID or verdict.status in (Status.PASS, Status.IMPROVED):
            return verdict.model_copy(update={"status": status, "reason": reason})
        # Steps that stall are what a regression looks like from inside: noise must not excuse them.
        verdict = verdict.model_copy(update={"reason": f"{verdict.reason}; {reason}"})
    times = record.machines.get(run.machine) if record else None
    before = (times.environment or record.environment) if times and record else run.environment
    return _with_environment(verdict, before, run.environment)


def _judge_number(metric: Metric, candidate: Record, run: Run, record: Record | None, policy: Policy) -> Verdict:
    at_home = record is not None and record.machine == run.machine and record.environment == run.environment
    if policy.exact and at_home:
        policy = replace(policy, relative=0.0, absolute=0.0, deviating_steps=0)
    now, before = _by_step(metric, candidate), _by_step(metric, record)
    if now and before:
        verdict = _judge_steps(metric, now, before, policy)
    else:
        verdict = compare(metric, _value(metric, candidate), _value(metric, record), policy, list(now))
    return _with_environment(verdict, record.environment if record else run.environment, run.environment)


def _judge_steps(metric: Metric, now: Mapping[int, float], before: Mapping[int, float], policy: Policy) -> Verdict:
    """Compares the steps that both have; too many that one of the two lacks are INVALID, unless one is worse."""
    if not all(math.isfinite(value) for value in now.values()):
        return compare(metric, list(now.values()), list(before.values()), policy, list(now))
    both = sorted(now.keys() & before.keys())
    missing = sorted(before.keys() - now.keys())
    verdict = (
        compare(metric, [now[step] for step in both], [before[step] for step in both], policy, both)
        if both
        else _invalid(metric, policy, "no step of the baseline is there")
    )
    beyond = sorted(now.keys() - before.keys())
    notes = [verdict.reason]
    if missing:
        notes.append(f"{len(missing)} of the baseline's {len(before)} steps are missing, the first is {missing[0]}")
    if beyond:
        notes.append(f"{len(beyond)} steps are not in the baseline, the first is {beyond[0]}")
    if len(missing) + len(beyond) > policy.missing_steps and verdict.status in (Status.PASS, Status.IMPROVED):
        verdict.status = Status.INVALID
        notes.append(f"{policy.missing_steps} allowed (missing_steps)")
    verdict.reason = "; ".join(filter(None, notes))
    return verdict


def _invalid(metric: Metric, policy: Policy, reason: str) -> Verdict:
    return Verdict(
        metric=metric.name,
        status=Status.INVALID,
        reason=reason,
        unit=metric.unit,
        scope=metric.scope,
        lane=policy.lane,
    )


def _times(record: Record | None, machine: str) -> dict[str, list[float]]:
    return record.machines[machine].metrics if record and machine in record.machines else {}


def _names(record: Record | None, machine: str) -> set[str]:
    if record is None:
        return set()
    return {*record.metrics, *record.curves, *_times(record, machine)}


def _by_step(metric: Metric, record: Record | None) -> dict[int, float]:
    """Step → value of a curve whose steps were recorded; empty for any other value."""
    if record is None or metric.name not in record.steps:
        return {}
    return dict(zip(record.steps[metric.name], record.curves.get(metric.name, []), strict=True))


def _value(metric: Metric, record: Record | None) -> float | list[float] | None:
    if record is None:
        return None
    return record.curves.get(metric.name) if metric.curve else record.metrics.get(metric.name)


def _with_environment(verdict: Verdict, before: Environment, now: Environment) -> Verdict:
    """Says so when the environment moved as well; a value that moved with it is not called a regression.

    A value that did not move tells only what it depends on by rights: threads and driver are not among that.
    """
    if before == now:
        return verdict
    if verdict.status is Status.PASS:
        before, now = before.essentials, now.essentials
    changes = before.differences(now)
    if not changes or verdict.status is Status.NO_BASELINE:
        return verdict
    status = Status.ENVIRONMENT_CHANGED if verdict.status is Status.REGRESSED else verdict.status
    reason = f"{verdict.reason}; the environment changed ({'; '.join(changes)})".removeprefix("; ")
    return verdict.model_copy(update={"status": status, "reason": reason, "environment_changes": changes})


def _refusal(run: Run, record: Record) -> str:
    try:
        former, now = described(record.scenario), run.description
        same_kind = isinstance(former, External) == isinstance(now, External)
        changed = differences(former.to_dict(), now.to_dict()) if same_kind else ["one is a training of others"]
        told = "; ".join(changed) or f"hash {record.scenario_hash} → {now.hash}"
    except ScenarioError as error:
        told = f"the recorded one is not valid any more: {error}"
    return f"wrong scenario: the baseline was recorded for another one ({told}); approve a new baseline"
