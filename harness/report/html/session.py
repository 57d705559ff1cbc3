"""Brings together what the page of a session shows: its results, the history of its values, and its logs."""

from pathlib import Path

from harness import configuration
from harness.anonymity import anonymous
from harness.errors import HarnessError
from harness.files import tail, write_atomically
from harness.history.courses import Course, courses
from harness.history.database import History, Series
from harness.report.html import html
from harness.results import Results

RUNS = 200
"""Of each value, that its trend shows."""

LINES = 20
RANKS = 8
"""Ranks whose logs are shown, so that a large job stays readable."""


def write_page(target: Path, results: Results, folder: Path, url: str | None, baselines: Path, root: Path) -> str:
    """Writes a session's page.

    Args:
        target: the file.
        results: of the session.
        folder: of the session, with its logs.
        url: of the history; None for none.
        baselines: folder of the approved values.
        root: the project's folder, which has the policy.

    Returns:
        Why it shows no trends; empty where it may.

    Raises:
        ResultsError: it can't be written, or a part of the package is missing.
    """
    found: list[Course] = []
    problem = ""
    try:
        found = _courses(results, url, baselines, root)
    except HarnessError as error:
        problem = f"{target.name} shows no trends: {error}"
    write_atomically(target, html(results, found, _logs(results, folder, root)))
    return problem


def _courses(results: Results, url: str | None, baselines: Path, root: Path) -> list[Course]:
    names = {test.nodeid for test in results.tests if test.last.verdicts}
    history = History(url) if url and names else None
    if history is None or not history.exists:
        return []

    def wanted(series: Series) -> bool:
        return series.test in names

    return courses(history, baselines, wanted, RUNS, configuration.read(root).policy)


def _logs(results: Results, folder: Path, root: Path) -> dict[str, list[str]]:
    """Last lines of the ranks of runs whose tests did not go well."""
    logs = {}
    for key in {key for test in results.tests if test.failed or test.flaky for key in test.last.runs}:
        lines = []
        for log in sorted((folder / "runs" / key).glob("rank-*.log"))[:RANKS]:
            last = tail(log, LINES)
            lines += [f"{log.name}:", *(anonymous(line, root) for line in last)] if last else []
        logs[key] = lines
    return logs
