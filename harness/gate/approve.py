"""Turns candidates into baselines, when somebody who gives a reason says so."""

import math
from datetime import datetime, timezone

from harness.errors import BaselineError
from harness.gate.baseline import Approval, BaselineFile, Record
from harness.gate.verdict import Status, Verdict


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
    old: BaselineFile | None, candidates: dict[str, Record], stamp: Approval, changed: dict[str, set[str]]
) -> BaselineFile:
    """The baseline file after an approval.

    Args:
        old: the file so far.
        candidates: by label.
        stamp: who, when, why.
        changed: label → the scopes to take over (``numeric``, ``machine``). Times of other machines stay.

    Raises:
        BaselineError: a value that would be stored is not finite.
    """
    runs = dict(old.runs) if old else {}
    for label, scopes in changed.items():
        new = candidates[label]
        _refuse_non_finite(label, new)
        former = runs.get(label)
        same = former if former and former.scenario_hash == new.scenario_hash else None
        machines = dict(same.machines) if same else {}
        if "machine" in scopes or same is None:
            machines.update(new.machines)
        values = new if "numeric" in scopes or same is None else same
        runs[label] = values.model_copy(
            update={"machines": machines, "approved": stamp.model_copy(update={"replaces": _replaced(former, values)})}
        )
    return BaselineFile(runs=runs)


def changed_scopes(verdicts: list[Verdict]) -> set[str]:
    """What of a run is worth approving: the scopes in which something is not simply as it was."""
    changed = {"machine" if v.scope == "machine" else "numeric" for v in verdicts if v.status is not Status.PASS}
    return changed | {"numeric" for v in verdicts if "environment changed" in v.reason}


def _refuse_non_finite(label: str, record: Record) -> None:
    times = {
        name: value for metrics in record.machines.values() for name, values in metrics.items() for value in values
    }
    bad = [name for name, value in {**record.metrics, **times}.items() if not math.isfinite(value)]
    bad += [name for name, values in record.curves.items() if not all(map(math.isfinite, values))]
    if bad:
        raise BaselineError(
            f"run {label!r} has non-finite {', '.join(sorted(bad))}: that is no baseline; mend the training"
        )


def _replaced(former: Record | None, new: Record) -> dict[str, float]:
    if former is None:
        return {}
    return {name: value for name, value in former.metrics.items() if new.metrics.get(name) != value}
