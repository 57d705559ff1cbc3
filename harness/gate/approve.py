"""Turns candidates into baselines, when somebody who gives a reason says so."""

import math
import statistics
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from typing import Any

from harness.errors import BaselineError
from harness.gate.baseline import Approval, BaselineFile, Record, Times

MOST_SAMPLES = 20
"""Runs of a machine that a baseline remembers; older ones go."""

MOST_APPROVALS = 10
"""Earlier approvals that a baseline remembers; version control has the rest."""


def improvements(new: Record, former: Record, improved: Collection[str]) -> Record:
    """The former record with the values that improved, and nothing else of the new one."""

    def taken(old: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        return {**old, **{name: value for name, value in found.items() if name in improved}}

    machines = {
        machine: without(times, set(times.metrics) - set(improved))
        for machine, times in new.machines.items()
        if machine in former.machines
    }
    return former.model_copy(
        update={
            "metrics": taken(former.metrics, new.metrics),
            "curves": taken(former.curves, new.curves),
            "steps": taken(former.steps, new.steps),
            "machines": machines,
        }
    )


def held_back(new: Record, former: Record | None, known: Collection[str], passed: Collection[str]) -> Record:
    """A candidate in which what an approval must not touch is as it was.

    Args:
        new: the candidate.
        former: what is stored; None where nothing is.
        known: metrics that are expected to fail: approving must not make them right.
        passed: times that are as approved: the runs they rest on are worth more than this one.
    """

    def kept(old: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        others = {name: value for name, value in found.items() if name not in known}
        return others | {name: value for name, value in old.items() if name in known}

    return new.model_copy(
        update={
            "metrics": kept(former.metrics if former else {}, new.metrics),
            "curves": kept(former.curves if former else {}, new.curves),
            "steps": kept(former.steps if former else {}, new.steps),
            "machines": {machine: without(times, {*known, *passed}) for machine, times in new.machines.items()},
        }
    )


def without(times: Times, names: Collection[str]) -> Times:
    """Times of which some count as not measured, so that an approval leaves them as they are."""
    return times.model_copy(
        update={"metrics": {name: [] if name in names else samples for name, samples in times.metrics.items()}}
    )


def approval(by: str, reason: str, commit: str) -> Approval:
    """An approval of now.

    Raises:
        BaselineError: the reason or the approver is missing.
    """
    if not reason.strip():
        raise BaselineError('an approval needs a reason; say why these values are right: --reason "…"')
    if not by.strip():
        raise BaselineError("an approval needs a name; set git's user.name or give --by NAME")
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Approval(by=by.strip(), when=now, reason=reason.strip(), commit=commit)


def merge(
    old: BaselineFile | None, candidates: Mapping[str, Record], stamp: Approval, moved: Mapping[str, set[str]]
) -> BaselineFile:
    """The baseline file after an approval.

    Args:
        old: the file so far. Labels that the test no longer checks are dropped.
        candidates: all runs of the test, by label.
        stamp: who, when, why.
        moved: label → what to take over: ``numeric`` values, ``machine`` times in place of this machine's old ones, or
            ``samples``, this run's times beside the old ones. Times of other machines stay.

    Raises:
        BaselineError: a value that would be stored is not finite.
    """
    runs = {}
    for label, new in candidates.items():
        former = old.runs.get(label) if old else None
        scopes = moved.get(label, set())
        if former and not scopes:
            runs[label] = former
        elif scopes:
            _refuse_non_finite(label, new)
            runs[label] = _merged(former, new, stamp, scopes)
    return BaselineFile(runs=runs)


def _merged(former: Record | None, new: Record, stamp: Approval, scopes: set[str]) -> Record:
    if former is None or former.scenario_hash != new.scenario_hash:
        former, scopes = None, {"numeric", "machine"}
    machines = dict(former.machines) if former else {}
    for machine, times in new.machines.items():
        if scopes & {"machine", "samples"} and any(times.metrics.values()):
            machines[machine] = _merged_times(machines.get(machine), times, stamp, former, "machine" in scopes)
    if "numeric" in scopes or former is None:
        before = _points(former) if former else {}
        approved = _replacing(stamp, before, _points(new))
        return new.model_copy(update={"machines": machines, "approved": approved, "history": _past(former)})
    return former.model_copy(update={"machines": machines})


def _merged_times(old: Times | None, new: Times, stamp: Approval, former: Record | None, replace: bool) -> Times:
    """The times of one machine: replaced, or with a further sample; what was not properly measured stays as it was."""
    if old is None or former is None:
        measured = {name: samples for name, samples in new.metrics.items() if samples}
        return new.model_copy(update={"metrics": measured, "approved": stamp})
    moved_there = (old.environment or former.environment) != new.environment
    metrics: dict[str, list[float]] = {}
    for name, samples in new.metrics.items():
        kept = old.metrics.get(name, [])
        joined = samples if samples and (replace or moved_there) else [*kept, *samples][-MOST_SAMPLES:]
        metrics |= {name: joined} if joined else {}
    # Samples that stay keep the environment that they were taken in, so that later verdicts go on saying that it moved.
    all_new = all(new.metrics[name] for name in metrics)
    approved = _replacing(stamp, _medians(old.metrics), _medians(metrics)) if replace or moved_there else stamp
    return Times(
        metrics=metrics,
        environment=new.environment if all_new else old.environment,
        approved=approved,
        history=_past(old),
    )


def _past(former: Record | Times | None) -> list[Approval]:
    """The approvals up to the last one, newest first, bounded."""
    if former is None:
        return []
    return [*([former.approved] if former.approved else []), *former.history][:MOST_APPROVALS]


def _points(record: Record) -> dict[str, float]:
    return record.metrics | {name: values[-1] for name, values in record.curves.items() if values}


def _medians(metrics: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(samples) for name, samples in metrics.items()}


def _replacing(stamp: Approval, before: Mapping[str, float], after: Mapping[str, float]) -> Approval:
    replaced = {name: value for name, value in before.items() if after.get(name) != value}
    return stamp.model_copy(update={"replaces": replaced})


def moved_scopes(old: Record | None, new: Record) -> set[str]:
    """The scopes in which a candidate is not what is stored."""
    if old is None or old.scenario_hash != new.scenario_hash:
        return {"numeric", "machine", "samples"}
    scopes = set()
    if (old.environment, old.metrics, old.curves, old.steps) != (new.environment, new.metrics, new.curves, new.steps):
        scopes.add("numeric")
    for machine, times in new.machines.items():
        stored = old.machines[machine].metrics if machine in old.machines else {}
        measured = {name: samples for name, samples in times.metrics.items() if samples}
        gone = stored.keys() - times.metrics.keys()
        if gone or any(stored.get(name, [])[-1:] != samples for name, samples in measured.items()):
            scopes |= {"machine", "samples"}
    return scopes


def _refuse_non_finite(label: str, record: Record) -> None:
    samples = [
        (name, v) for times in record.machines.values() for name, values in times.metrics.items() for v in values
    ]
    curves = [(name, v) for name, values in record.curves.items() for v in values]
    bad = sorted({name for name, value in [*record.metrics.items(), *samples, *curves] if not math.isfinite(value)})
    if bad:
        raise BaselineError(f"run {label!r} has non-finite {', '.join(bad)}: that is no baseline; mend the training")
