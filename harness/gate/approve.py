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
        machine: Times(metrics=taken(former.machines[machine].metrics, times.metrics), environment=times.environment)
        for machine, times in new.machines.items()
        if machine in former.machines
    }
    return former.model_copy(
        update={
            "metrics": taken(former.metrics, new.metrics),
            "curves": taken(former.curves, new.curves),
            "machines": machines,
        }
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
        old = machines.get(machine)
        elsewhere = old is None or (old.environment or new.environment) != times.environment
        if "machine" in scopes or ("samples" in scopes and elsewhere):
            before = _medians(old) if old else {}
            machines[machine] = times.model_copy(
                update={"approved": _replacing(stamp, before, _medians(times)), "history": _past(old)}
            )
        elif "samples" in scopes and old:
            machines[machine] = times.model_copy(
                update={"metrics": _appended(old.metrics, times.metrics), "approved": stamp, "history": _past(old)}
            )
    if "numeric" in scopes or former is None:
        before = _points(former) if former else {}
        approved = _replacing(stamp, before, _points(new))
        return new.model_copy(update={"machines": machines, "approved": approved, "history": _past(former)})
    return former.model_copy(update={"machines": machines})


def _past(former: Record | Times | None) -> list[Approval]:
    """The approvals up to the last one, newest first, bounded."""
    if former is None:
        return []
    return [*([former.approved] if former.approved else []), *former.history][:MOST_APPROVALS]


def _points(record: Record) -> dict[str, float]:
    return record.metrics | {name: values[-1] for name, values in record.curves.items() if values}


def _medians(times: Times) -> dict[str, float]:
    return {name: statistics.median(samples) for name, samples in times.metrics.items()}


def _appended(old: Mapping[str, list[float]], new: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {name: [*old.get(name, []), *samples][-MOST_SAMPLES:] for name, samples in new.items()}


def _replacing(stamp: Approval, before: Mapping[str, float], after: Mapping[str, float]) -> Approval:
    replaced = {name: value for name, value in before.items() if after.get(name) != value}
    return stamp.model_copy(update={"replaces": replaced})


def moved_scopes(old: Record | None, new: Record) -> set[str]:
    """The scopes in which a candidate is not what is stored."""
    if old is None or old.scenario_hash != new.scenario_hash:
        return {"numeric", "machine", "samples"}
    scopes = set()
    if (old.environment, old.metrics, old.curves) != (new.environment, new.metrics, new.curves):
        scopes.add("numeric")
    for machine, times in new.machines.items():
        stored = old.machines[machine].metrics if machine in old.machines else {}
        if {name: samples[-1:] for name, samples in stored.items()} != times.metrics:
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
