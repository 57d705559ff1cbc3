"""The course of each series: its comparable points, and what they say against the approved value."""

import fnmatch
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from harness.devices import HARDWARE
from harness.errors import BaselineError, PolicyError
from harness.gate import baseline
from harness.gate.baseline import BaselineFile
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


@dataclass(frozen=True)
class Filter:
    """Which series are wanted; each field is part of a name or a glob, empty for all."""

    test: str = ""
    metric: str = ""
    machine: str = ""

    def covers(self, series: Series) -> bool:
        """Whether a series is among them."""
        pairs = ((self.test, series.test), (self.metric, series.metric), (self.machine, series.machine))
        return all(not wanted or wanted in name or fnmatch.fnmatch(name, wanted) for wanted, name in pairs)


def courses(history: History, baselines: Path, wanted: Filter, last: int, *policies: Overrides) -> list[Course]:
    """The courses of the series that a filter covers, sorted by name.

    Args:
        history: the database.
        baselines: folder of the approved values, which are the anchors.
        wanted: the filter.
        last: points of a series that are looked at.
        policies: overrides, weakest first; a metric's relative tolerance is the change that matters.

    Raises:
        HistoryError: the database can't be read.
    """
    found = []
    for series in history.series():
        if not wanted.covers(series):
            continue
        points = history.trend(series, last)
        points = [point for point in points if point.scenario == points[-1].scenario]
        try:
            floor = resolve(find_metric(series.metric), *policies).relative
        except PolicyError:
            continue  # another version's metric
        anchor = _anchor(history, baselines, series, points[-1].scenario) if points else None
        if anchor is not None:
            found.append(Course(series, points, trend([point.value for point in points], anchor, floor)))
    return found


def _anchor(history: History, baselines: Path, series: Series, scenario: str) -> float | None:
    """The approved value, or else the median of the first healthy runs there ever were, however few are looked at."""
    approved = _approved(baselines, series, scenario)
    if approved is not None:
        return approved
    first = history.first(series, scenario, HEALTHY, ANCHOR_RUNS)
    return statistics.median(first) if first else None


def _approved(baselines: Path, series: Series, scenario: str) -> float | None:
    parameters = re.split(r"[-\[\]]", series.test.rpartition("::")[2])
    hardware = next((name for name in parameters if name in HARDWARE), "")
    try:
        file = baseline.read(baselines / baseline.baseline_path(series.test, hardware)) if hardware else None
    except BaselineError:
        return None
    record = (file or BaselineFile(runs={})).runs.get(series.label)
    if record is None or record.scenario_hash != scenario:
        return None
    times = record.machines[series.machine].metrics if series.machine in record.machines else {}
    if series.metric in record.metrics:
        return record.metrics[series.metric]
    samples = record.curves.get(series.metric, [])[-1:] or times.get(series.metric, [])
    return statistics.median(samples) if samples else None
