"""Logs of training kits: MindFormers (static graph and PyNative), and JSON Lines."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import ResultsError
from harness.readers.lines import lines

BEHIND = 3
"""Different steps that ranks writing in turn may fall behind each other; further back, it began again."""

SHOWN = 5
"""Lines that could not be read of which the beginning is kept."""

NAMES = {
    "global_norm": "grad_norm",
    "lr": "learning_rate",
    "per_step_time": "step_time",
    "train_throughput_per_npu": "achieved_flops",
}
"""What a kit calls it → what it is called here; other names stay."""

SCALES = {"ms": 1e-3, "s": 1.0, "T": 1e12, "": 1.0}
"""Unit behind a number → factor to seconds, FLOP/s."""

_OBJECT = re.compile(r'\{\s*"')
_STEP = re.compile(r"\bstep:\s*\[\s*(\d{1,15})\s*/\s*(\d{1,15})\s*\]")
_EPOCH = re.compile(r"\bEpoch:\s*\[\s*(\d{1,15})\s*/\s*\d{1,15}\s*\]")
_FIELD = re.compile(r"\b(\w{1,100}):\s*(N/A(?:\s*\([^)]*\))?|\[[^\]]*\]|[^,\s}]+)")
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN|Inf))(ms|s|T)?")

_NONE = re.compile(r"[-+]?(nan|inf|infinity)", re.IGNORECASE)

Values = dict[str, float]
Parsed = tuple[int, Values] | None | str
"""A step and its values; None for a line that says nothing of a step; a text why one that does can't be read."""


@dataclass
class Reading:
    """What a log says, step by step."""

    curves: dict[str, dict[int, float]] = field(default_factory=dict)
    """Name → step → value: a lost line shifts nothing."""

    lines: int = 0
    unread: int = 0
    """Lines that speak of a step and could not be read."""

    examples: list[str] = field(default_factory=list)
    """The first of them."""

    repeated: list[int] = field(default_factory=list)
    """Steps that came again with other values, as after a restart; the later values count."""

    restarts: list[int] = field(default_factory=list)
    """Steps with which it began again, further back than ranks that write in turn fall behind."""

    abandoned: int = 0
    """Steps of an attempt that none after it came to; they count no more."""

    said: list[str] = field(default_factory=list)
    """What else should be known."""

    def notes(self) -> list[str]:
        """What the reader of the curves should know."""
        found = []
        if self.unread:
            shown = "; ".join(self.examples)
            found.append(f"{self.unread} of {self.lines} lines speak of a step and can't be read: {shown}")
        if self.repeated:
            first, last = min(self.repeated), max(self.repeated)
            found.append(
                f"{len(self.repeated)} steps between {first} and {last} came more than once, as after a restart; the "
                "later values count"
            )
        if self.restarts:
            again = ", ".join(map(str, self.restarts[:SHOWN]))
            found.append(f"it began again {len(self.restarts)} times, at step {again}")
        if self.abandoned:
            found.append(f"{self.abandoned} steps that it came to before it last began again are left out")
        return [*found, *self.said]


class Gatherer:
    """Puts values into curves, step by step, in the order in which they were written."""

    def __init__(self) -> None:
        self.reading = Reading()
        self._repeated: dict[int, None] = {}
        self._order: dict[int, int] = {}
        """Step → its number among the different steps of this attempt."""

    def _fell_back(self, step: int) -> bool:
        known = self._order.get(step)
        if known is None:
            return bool(self._order) and step < min(self._order)
        return known < len(self._order) - 1 - BEHIND

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Takes a step's values; of several for one step, the last count, and the step is noted if they differ."""
        if self._fell_back(step):
            self.reading.restarts.append(step)
            self._order.clear()
        self._order.setdefault(step, len(self._order))
        for name, value in values.items():
            curve = self.reading.curves.setdefault(name, {})
            if step in curve and not _same(curve[step], value):
                self._repeated[step] = None
            curve[step] = value

    def finished(self) -> Reading:
        """All that was read, less what an abandoned attempt came to and the last did not."""
        found = self.reading
        found.repeated = list(self._repeated)
        if found.restarts:
            last = max(self._order)
            left = {step for curve in found.curves.values() for step in curve if step > last}
            found.abandoned = len(left)
            found.curves = {n: {s: v for s, v in curve.items() if s <= last} for n, curve in found.curves.items()}
        return found


def read(path: Path) -> Reading:
    """The curves of a log.

    Raises:
        ResultsError: it can't be read, or holds no step.
    """
    try:
        found = gather(lines(path))
    except OSError as error:
        raise ResultsError(f"{path.name} can't be read: {error.strerror}") from None
    if not found.curves:
        told = f" ({'; '.join(found.notes())})" if found.unread else ""
        raise ResultsError(
            f"{path.name}: none of {found.lines} lines is a step of a MindFormers log, or of JSON Lines with a "
            f'"step"{told}'
        )
    return found


def gather(source: Iterable[str]) -> Reading:
    """The curves of a log's lines."""
    gatherer = Gatherer()
    found = gatherer.reading
    norms_of_kit = False
    for line in source:
        found.lines += 1
        parsed = parse(line)
        if isinstance(parsed, str):
            found.unread += 1
            if len(found.examples) < SHOWN:
                found.examples.append(f"line {found.lines}: {parsed}")
        elif parsed:
            gatherer.add(*parsed)
            norms_of_kit = norms_of_kit or not _OBJECT.match(line.strip())
    found = gatherer.finished()
    norm = found.curves.get("grad_norm", {})
    if norms_of_kit and norm and all(math.isnan(value) for value in norm.values()):
        del found.curves["grad_norm"]
        found.said.append("grad_norm is no number in any step, as where MindFormers computes none; it is left out")
    return found


def canonical(name: str) -> str:
    """What a value is called here."""
    plain = name.replace("-", "_").replace(" ", "_")
    return NAMES.get(plain, plain)


def parse(line: str) -> Parsed:
    """One line, whichever kind it is of."""
    stripped = line.strip()
    return json_line(stripped) if _OBJECT.match(stripped) else mindformers(stripped)


def mindformers(line: str) -> Parsed:
    """A line of a MindFormers log; steps are counted over epochs."""
    place = _STEP.search(line)
    if not place:
        return None
    step, of = int(place[1]), int(place[2])
    epoch = _EPOCH.search(line)
    if epoch:
        step += (int(epoch[1]) - 1) * of
    values: Values = {}
    for name, text in _FIELD.findall(line[place.end() :]):
        value = number(text)
        if value is not None:
            # The same word is a rate of samples elsewhere.
            is_rate = name == "throughput" and text.endswith("T")
            values["achieved_flops" if is_rate else canonical(name)] = value
    if "loss" not in values and "loss: N/A" not in line:
        return f"no loss in {line[:80]!r}"
    return step, values


def json_line(line: str) -> Parsed:
    """A JSON object with a ``step`` and numbers."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return f"no JSON: {line[:80]!r}"
    step = content.get("step")
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < 10**15:
        return None if step is None else f"step {step!r} is no whole number"
    values = {}
    for name, value in content.items():
        found = _scalar(value) if name != "step" else None
        if found is not None:
            values[canonical(name)] = found
    return (step, values) if values else None


def _scalar(value: object) -> float | None:
    """A number of a JSON object; null and the names of what is none stand for a number that is none."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        return float(value) if _NONE.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def number(text: str) -> float | None:
    """A value as kits write it: ``1e-05``, ``nan``, ``9854ms``, ``[4.4]``, ``[5.0/5.1]`` (this step / running mean)."""
    inner = text.strip("[]").partition("/")[0].partition(",")[0].strip() if text.startswith("[") else text
    match = _NUMBER.fullmatch(inner)
    return float(match[1]) * SCALES[match[2] or ""] if match else None


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
