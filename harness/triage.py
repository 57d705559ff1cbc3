"""What lay beneath a spike, from outside in: the batch, then the gradients, then the parameters."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.corpus import IGNORED

FOLDER = "triage"
SHOWN = 10
"""Rows and layers that are named."""

ONE_TOKEN = 0.9
"""Share of a row that one token must make up for the row to say nothing."""

TOWERS = 0.9
"""Share of the gradient's sum of squares that one parameter must make up to be named, where it did not before."""

AS_BEFORE = "rows, gradients of all layers, and parameters look as before"
INNOCENT = "rows and parameters are as they should be"
TOO_LARGE = "updates before were too large"

Fault = Literal["data", "gradients", "parameters"]
Named = tuple[Fault, str]
"""What is named, and why."""

_STRICT = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class Row(BaseModel):
    """A row of the offending batch that is not as rows should be."""

    model_config = _STRICT

    row: int
    """Its number in this rank's share of the batch."""

    position: int
    """Its number in the training split; −1 fills up an epoch's last batch."""

    what: str
    """``empty``, ``over-long``, ``broken encoding``, ``out of vocabulary`` or ``repeated``."""

    detail: str = ""


class Evidence(BaseModel):
    """What one rank held when the spike came, before its update."""

    model_config = _STRICT

    rank: int
    spike: str
    step: int
    made: bool
    """Whether its update was made all the same: it was not the last spike that was allowed."""

    rows: list[Row]
    checked: int
    """Rows that were looked at."""

    before: int
    """Of the batch before, rows that were not as they should be."""

    norms: dict[str, float]
    """Norm of each parameter's gradient, before clipping, in the model's order."""

    shares_before: dict[str, float] = Field(default_factory=dict)
    """Share of each in the sum of squares of the step before."""

    clip_norm: float | None
    learning_rate: float
    scheduled: float
    not_finite: list[str]
    """Parameters that hold something that is no number, in the model's order, before the update."""

    curves: dict[str, list[float]]
    """Loss and norm of the last steps, the spike's included."""

    first: int
    """Step that these begin with."""


class Conclusion(BaseModel):
    """What is named, and why."""

    model_config = _STRICT

    step: int
    fault: Fault | None
    reason: str


def unusual_rows(
    windows: npt.NDArray[np.int32], positions: Sequence[int], vocabulary: int, is_text: bool, longest: int | None = None
) -> list[Row]:
    """The rows of a batch that are not as rows should be.

    Args:
        windows: (rows, tokens).
        positions: of each row in the training split; −1 for a row that only fills up.
        vocabulary: tokens that there are.
        is_text: whether tokens are the bytes of UTF-8.
        longest: tokens that a row may have; None for any.
    """
    found, seen = [], Counter(window.tobytes() for window in windows)
    for number, (window, position) in enumerate(zip(windows, positions, strict=True)):
        if position < 0:
            continue
        tokens = window[window != IGNORED]
        what, detail = "", ""
        if len(tokens) < 2:
            what = "empty"
        elif longest is not None and len(tokens) > longest:
            what, detail = "over-long", f"{len(tokens)} tokens of {longest}"
        elif tokens.min() < 0 or tokens.max() >= vocabulary:
            what, detail = "out of vocabulary", f"{int(tokens.min())} to {int(tokens.max())} of {vocabulary}"
        elif is_text and is_whole(window) and (place := broken(tokens)) is not None:
            what, detail = "broken encoding", f"token {place}"
        elif (share := Counter(tokens.tolist()).most_common(1)[0][1] / len(tokens)) >= ONE_TOKEN:
            what, detail = "repeated", f"one token makes up {share:.0%}"
        elif seen[window.tobytes()] > 1:
            what, detail = "repeated", f"{seen[window.tobytes()]} rows of the batch are equal"
        if what:
            found.append(Row(row=number, position=int(position), what=what, detail=detail))
    return found


def is_whole(window: npt.NDArray[np.int32]) -> bool:
    """Whether none of its tokens is masked: what is filled up is so behind the last."""
    shown = np.flatnonzero(window != IGNORED)
    return bool(len(shown) == shown[-1] - shown[0] + 1)


def broken(tokens: npt.NDArray[np.int32]) -> int | None:
    """Where bytes are no UTF-8; None where they are. A row may begin and end within a character."""
    content = bytes(tokens.astype(np.uint8))
    skipped = 0
    while skipped < min(3, len(content)) and content[skipped] & 0xC0 == 0x80:
        skipped += 1
    try:
        content[skipped:].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end == len(content) - skipped and "unexpected end" in error.reason:
            return None
        return skipped + error.start
    return None


def conclude(evidence: Sequence[Evidence]) -> Conclusion:
    """Names what lay beneath a spike.

    Parameters that are no numbers explain everything, whatever the batch was like. Then rows that are not as they
    should be, where the batch before had fewer of them. Else it is the gradients' own: a layer that towers above the
    others, a rate off its schedule, or updates that were too large before.

    Args:
        evidence: of all ranks that left some, of one step.
    """
    fault, reason = _parameters(evidence) or _data(evidence) or _gradients(evidence) or (None, AS_BEFORE)
    return Conclusion(step=evidence[0].step, fault=fault, reason=reason)


def _parameters(evidence: Sequence[Evidence]) -> Named | None:
    poisoned = [(name, each.rank) for each in evidence for name in each.not_finite]
    if not poisoned:
        return None
    name, rank = poisoned[0]
    more = f"; {len(poisoned)} parameters are not" if len(poisoned) > 1 else ""
    return "parameters", f"{name!r} on rank {rank} was not finite before the update{more}"


def _data(evidence: Sequence[Evidence]) -> Named | None:
    rows = [row for each in evidence for row in each.rows]
    if len(rows) <= sum(each.before for each in evidence):
        return None
    kinds = ", ".join(f"{count} {what}" for what, count in Counter(row.what for row in rows).most_common())
    places = ", ".join(str(row.position) for row in rows[:SHOWN]) + (" …" if len(rows) > SHOWN else "")
    checked = sum(each.checked for each in evidence)
    return "data", f"of {checked} rows {kinds}; positions in the training split: {places}"


def _gradients(evidence: Sequence[Evidence]) -> Named | None:
    for each in evidence:
        absurd = [name for name, norm in each.norms.items() if not math.isfinite(norm)]
        if absurd:
            count = f"{len(absurd)} of {len(each.norms)} are none"
            return "gradients", f"the gradient of {absurd[0]!r} is no number, {count}; {INNOCENT}"
        if tower := towering(each):
            return "gradients", tower
    first = evidence[0]
    rate = f"the learning rate is {first.learning_rate:.4g}"
    if first.learning_rate > first.scheduled * (1 + 1e-6):
        return "gradients", f"{rate} where the schedule says {first.scheduled:.4g}: {TOO_LARGE}"
    if first.clip_norm is None:
        return "gradients", f"clipping is off, {rate}: {TOO_LARGE}"
    return None


def towering(evidence: Evidence) -> str:
    """Names the parameter whose gradient towers above all others, and did not before; empty where none does."""
    squares = {name: norm * norm for name, norm in evidence.norms.items()}
    total = math.fsum(squares.values())
    if not total:
        return ""
    name = max(squares, key=lambda each: squares[each])
    share, before = squares[name] / total, evidence.shares_before.get(name, 0.0)
    if share < TOWERS or before >= TOWERS:
        return ""
    return (
        f"the gradient of {name!r} on rank {evidence.rank} makes up {share:.1%} of the norm, {before:.1%} the step "
        f"before; {INNOCENT}"
    )


def read(folder: Path) -> dict[int, list[Evidence]]:
    """The evidence of each spike, rank by rank; what can't be read is left out."""
    found: dict[int, list[Evidence]] = {}
    for path in sorted(folder.glob(f"{FOLDER}/step-*/rank-*.json")):
        try:
            evidence = Evidence.model_validate_json(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError):
            continue
        found.setdefault(evidence.step, []).append(evidence)
    return {step: sorted(each, key=lambda e: e.rank) for step, each in sorted(found.items())}


def place(folder: Path, step: int) -> Path:
    """Folder of one spike's evidence and report."""
    return folder / FOLDER / f"step-{step:08d}"
