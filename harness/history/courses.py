"""The course of each series: its comparable points, and what they say against the approved value."""

import fnmatch
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.devices import HARDWARE
from harness.errors import BaselineError, PolicyError
from harness.gate import baseline
from harness.gate.baseline import Approval, Record
from harness.gate.policy import Overrides, find_metric, resolve
from harness.history.database import History, Point, Series
from harness.history.trend import ANCHOR_RUNS, Trend, trend

HEALTHY = ("PASS", "IMPROVED", "NO_BASELINE", "XFAIL")
"""Verdicts of runs that may anchor a series: nothing said that they were worse or not measured."""


@dataclass(frozen=True)
class Course:
    """A series with its trend."""

    series: Series
    points: list[Point]
    """Oldest first; of one scenario, the last one's, because values of another are another thing."""

    trend: Trend
    approvals: list[Approval]
    """Of the baseline, oldest first."""


@dataclass(frozen=True)
class Filter:
    """Which series are wanted; each field is part of a name or a glob, empty for all."""

    test: str = ""
    metric: str = ""
    machine: str = ""

    def __call__(self, series: Series) -> bool:
        """Whether a series is among them."""
        pairs = ((self.test, series.test), (self.metric, series.metric), (self.machine, series.machine))
        return all(not wanted or wanted in name or fnmatch.fnmatch(name, wanted) for wanted, name in pairs)


def courses(
    history: History, baselines: Path, wanted: Callable[[Series], bool], last: int, *policies: Overrides
) -> list[Course]:
    """The courses of the series that are wanted, sorted by name.

    Args:
        history: the database.
        baselines: folder of the approved values, which are the anchors.
        wanted: whether a series is.
        last: points of a series that are looked at.
        policies: overrides, weakest first; a metric's relative tolerance is the change that matters.

    Raises:
        HistoryError: the database can't be read.
    """
    found = []
    for series in history.series():
        if not wanted(series):
            continue
        points = history.trend(series, last)
        points = [point for point in points if point.scenario == points[-1].scenario]
        try:
            floor = resolve(find_metric(series.metric), *policies).relative
        except PolicyError:
            continue  # another version's metric
        record = _record(baselines, series, points[-1].scenario) if points else None
        # Without an approved value: the median of the first healthy runs there ever were, however few are looked at.
        samples = (_approved(record, series) if record else []) or (
            history.first(series, points[-1].scenario, HEALTHY, ANCHOR_RUNS) if points else []
        )
        if samples:
            found.append(
                Course(
                    series,
                    points,
                    trend([point.value for point in points], statistics.median(samples), floor),
                    _approvals(record, series) if record else [],
                )
            )
    return found


def _record(baselines: Path, series: Series, scenario: str) -> Record | None:
    """What was approved for a series' run, if for the same scenario."""
    parameters = re.split(r"[-\[\]]", series.test.rpartition("::")[2])
    hardware = next((name for name in parameters if name in HARDWARE), "")
    try:
        file = baseline.read(baselines / baseline.baseline_path(series.test, hardware)) if hardware else None
    except BaselineError:
        return None
    record = file.runs.get(series.label) if file else None
    return record if record and record.scenario_hash == scenario else None


def _approved(record: Record, series: Series) -> list[float]:
    if series.metric in record.metrics:
        return [record.metrics[series.metric]]
    times = record.machines.get(series.machine)
    return record.curves.get(series.metric, [])[-1:] or (times.metrics.get(series.metric, []) if times else [])


def _approvals(record: Record, series: Series) -> list[Approval]:
    times = record.machines.get(series.machine)
    holder = times if times and series.metric in times.metrics else record
    return [*reversed(holder.history), *([holder.approved] if holder.approved else [])]
