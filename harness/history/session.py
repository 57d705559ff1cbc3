"""What a session gives to the history, and what its gate takes from it."""

import functools
import math
from pathlib import Path

from harness.errors import HistoryError
from harness.gate import baseline
from harness.gate.baseline import Record
from harness.history.database import Course, History, Point, Series
from harness.results import Results
from harness.run import Run


def keep(url: str, folder: Path, results: Results, name: str = "") -> None:
    """Stores the values of a session's last attempts.

    Args:
        url: of the history.
        folder: the session's, with its candidates.
        results: the session's.
        name: under which nothing is stored twice; the folder's by default.

    Raises:
        HistoryError: they were not stored.
    """
    points = []
    for test in results.tests:
        path = folder / "candidates" / test.baseline
        candidates = baseline.read(path) if test.baseline else None
        statuses = {(v.label, v.metric): v.status.value for v in test.last.verdicts}
        for label, record in candidates.runs.items() if candidates else ():
            for (metric, machine), value in _values(record).items():
                if math.isfinite(value) and (label, metric) in statuses:
                    series = Series(test.nodeid, label, metric, machine)
                    status = statuses[label, metric]
                    points.append((series, Point(value, status, record.scenario_hash, record.environment.mindspore)))
    if points:
        tests = {
            test.nodeid: Course(test.last.seconds, len(test.last.runs)) for test in results.tests if test.last.runs
        }
        History(url).add(name or folder.name, results.started, results.commit, points, tests)


def courses(url: str) -> dict[str, Course]:
    """What each test took when it was last run; nothing where the history can't be read."""
    try:
        history = _open(url)
        return history.courses() if history.exists else {}
    except HistoryError:
        return {}


def _values(record: Record) -> dict[tuple[str, str], float]:
    """(metric, machine) → scalar, last point of a curve, or time."""
    home = record.machine or ""
    values = {(name, home): value for name, value in record.metrics.items()}
    values |= {(name, home): points[-1] for name, points in record.curves.items() if points}
    for machine, times in record.machines.items():
        values |= {(name, machine): samples[-1] for name, samples in times.metrics.items() if samples}
    return values


def recent(url: str, test: str, label: str, run: Run, since: str) -> dict[str, list[float]]:
    """Times of the last healthy runs of the same scenario, machine and MindSpore version, by metric, oldest first.

    Only those of sessions since the approval count (UTC, ISO 8601): before it, another level was right.

    They narrow or widen what the screen expects, so a history that can't be read costs that and nothing else; that
    nothing can be stored in it is said at the session's end.
    """
    try:
        history = _open(url)
        if not history.exists:
            return {}
        return history.recent(test, label, run.machine, run.description.hash, run.environment.mindspore, since)
    except HistoryError:
        return {}


@functools.lru_cache(maxsize=1)
def _open(url: str) -> History:
    return History(url)
