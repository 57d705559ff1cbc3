"""Judges a whole run against the record that was approved for it."""

import statistics
from collections.abc import Iterable

from harness.errors import ScenarioError
from harness.gate.baseline import Record
from harness.gate.compare import compare
from harness.gate.policy import Overrides, find_metric, resolve
from harness.gate.verdict import Status, Verdict
from harness.metrics.registry import Metric
from harness.run import Run
from harness.scenario import Scenario


def judge(
    candidate: Record, run: Run, record: Record | None, only: Iterable[str] | None, *policies: Overrides
) -> list[Verdict]:
    """One verdict for every metric that the run or its baseline has.

    Args:
        candidate: the run's own values, as they would be stored.
        run: the run; gives its machine and what is undefined in it.
        record: the approved values; None where there are none.
        only: the metrics that the test checks; None for all.
        policies: overrides, weakest first.

    Returns:
        Verdicts; a single INVALID one where the baseline belongs to another scenario.
    """
    if record is not None and record.scenario_hash != candidate.scenario_hash:
        return [Verdict(metric="scenario", status=Status.INVALID, reason=_refusal(run, record))]
    verdicts = []
    asked = set(run.undefined if only is None else only)
    for name in sorted(_names(candidate) | _names(record) | asked):
        metric = find_metric(name)
        policy = resolve(metric, *policies)
        if name in asked and name in run.undefined:
            reason = run.undefined[name]
            verdicts.append(
                Verdict(
                    metric=name,
                    status=Status.INVALID,
                    reason=reason,
                    unit=metric.unit,
                    scope=metric.scope,
                    lane=policy.lane,
                )
            )
            continue
        verdict = compare(metric, _value(metric, candidate, run.machine), _value(metric, record, run.machine), policy)
        verdicts.append(_with_environment(verdict, run, record))
    if not verdicts:
        verdicts.append(
            Verdict(metric="run", status=Status.INVALID, reason="nothing to compare: no metric was checked")
        )
    return verdicts


def _names(record: Record | None) -> set[str]:
    if record is None:
        return set()
    machine = {name for metrics in record.machines.values() for name in metrics}
    return set(record.metrics) | set(record.curves) | machine


def _value(metric: Metric, record: Record | None, machine: str) -> float | list[float] | None:
    if record is None:
        return None
    if metric.curve:
        return record.curves.get(metric.name)
    if metric.scope == "machine":
        samples = record.machines.get(machine, {}).get(metric.name)
        return statistics.median(samples) if samples else None
    return record.metrics.get(metric.name)


def _with_environment(verdict: Verdict, run: Run, record: Record | None) -> Verdict:
    """Says so when the environment moved as well; a number that moved with it is not called a regression."""
    if record is None or verdict.scope == "machine":
        return verdict
    changes = "; ".join(record.environment.differences(run.environment))
    if not changes or verdict.status is Status.NO_BASELINE:
        return verdict
    if verdict.status is Status.REGRESSED:
        reason = f"{verdict.reason}; and the environment changed ({changes})"
        return verdict.model_copy(update={"status": Status.ENVIRONMENT_CHANGED, "reason": reason})
    note = f"{verdict.reason}; environment changed ({changes})".removeprefix("; ")
    return verdict.model_copy(update={"reason": note})


def _refusal(run: Run, record: Record) -> str:
    try:
        differences = "; ".join(Scenario.from_dict(record.scenario).differences(run.description))
    except ScenarioError as error:
        differences = f"the recorded one is not valid any more: {error}"
    differences = differences or f"hash {record.scenario_hash} → {run.description.hash}"
    return f"wrong scenario: the baseline was recorded for another one ({differences}); approve a new baseline"
