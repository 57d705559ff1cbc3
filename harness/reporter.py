"""Gathers what every test reported, from xdist workers too, into results.json as the session goes."""

import json
import os
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from harness import __version__
from harness.anonymity import anonymous
from harness.devices import HARDWARE
from harness.errors import BaselineError, ResultsError
from harness.gate.baseline import baseline_path
from harness.gate.checks import Gate
from harness.gate.verdict import Verdict
from harness.provenance import git, uncommitted
from harness.results import LATEST, Attempt, Results, TestResult
from harness.session import Session, Trainer

RECORD = "harness_record"
SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable with the file that a GitHub job shows as its summary."""


def record(
    report: pytest.TestReport, item: pytest.Item, hardware: str, trainer: Trainer | None, gate: Gate | None
) -> None:
    """Attaches to a report what the controller can't know: verdicts, runs and the baseline's file."""
    if not hardware or not {"trainer", "gate"} & set(getattr(item, "fixturenames", ())):
        return
    try:
        path = str(baseline_path(item.nodeid, hardware))
    except BaselineError:
        path = ""
    content = {
        "hardware": hardware,
        "baseline": path,
        "runs": trainer.keys if trainer else [],
        "verdicts": [v.model_dump(mode="json") for v in gate.verdicts] if gate else [],
    }
    setattr(report, RECORD, json.dumps(content))


class Reporter:
    """Listens to test reports where they come together."""

    def __init__(self, session: Session, baselines: Path, history: str | None) -> None:
        """Begins a session's results.

        Args:
            session: the session.
            baselines: folder of the baselines.
            history: URL of the database that the values go to; None for none.
        """
        self.session = session
        self.baselines = baselines
        self.history = history
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.page = ""
        started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.results = Results(
            started=started,
            harness=__version__,
            fault=str(session.fault) if session.fault else None,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Notes which code is about to be measured."""
        root = self.session.root
        if not session.config.option.collectonly:
            self.results.commit = git("-C", str(root), "rev-parse", "HEAD")
            self.results.dirty = bool(uncommitted(root, self.baselines, self.session.folder.parent.parent))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds a finished test and writes what is known so far, so that a killed session keeps it."""
        text = getattr(report, RECORD, None) or _crashed(report)
        if text is None:
            return
        content = json.loads(text)
        test = self._test(report.nodeid, content)
        attempt = Attempt(
            outcome=report.outcome if report.when == "call" or report.outcome == "skipped" else "error",
            seconds=round(report.duration, 3),
            message=anonymous(_message(report), self.session.root),
            verdicts=[Verdict.model_validate(v) for v in content["verdicts"]],
            runs=content["runs"],
        )
        if report.when == "teardown":
            test.attempts.pop()
        test.add(attempt)
        for key in attempt.runs:
            run = self.session.finished(key)
            if run:
                self.results.runs[key] = run
        self._write()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A session whose results are lost is not a green one; a history that lost them is only told of."""
        if self.results.verdicts and not self.session.fault:
            from harness.publish import store

            self.notes += store(self.history, self.session.folder, self.results)
        self._summarize()
        self._show()
        if self.problems and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def _summarize(self) -> None:
        """Shows the session where a GitHub job shows its summary."""
        place = os.environ.get(SUMMARY)
        if not place or not self.results.tests:
            return
        from harness.report.markdown import SUMMARY_LIMIT, markdown

        try:
            with open(place, "a", encoding="utf-8") as file:
                file.write(markdown(self.results, SUMMARY_LIMIT) + "\n")
        except OSError as error:
            self.notes.append(f"{SUMMARY} can't be written: {error.strerror}")

    def _show(self) -> None:
        """Leaves the session's page beside its results."""
        if not self.results.tests or self.problems:
            return
        from harness.publish import show
        from harness.report.html import FILE

        folder = self.session.folder
        self.notes += show(self.history, folder, self.results, self.baselines, self.session.root)
        if (folder / FILE).is_file():
            self.page = os.path.relpath(folder.parent.parent / LATEST / FILE, self.session.root)

    def _test(self, nodeid: str, content: Mapping[str, Any]) -> TestResult:
        for test in self.results.tests:
            if test.nodeid == nodeid:
                return test
        test = TestResult(nodeid=nodeid, hardware=content["hardware"], baseline=content["baseline"])
        self.results.tests.append(test)
        return test

    def _write(self) -> None:
        try:
            self.session.prepare()
            self.results.write(self.session.folder)
        except ResultsError as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))


def _crashed(report: pytest.TestReport) -> str | None:
    """A record for the test in which an xdist worker died, which can't give one."""
    hardware = next((name for name in HARDWARE if f"{name}]" in report.nodeid), None)
    if str(report.when) != "???" or hardware is None:
        return None
    return json.dumps({"hardware": hardware, "baseline": "", "runs": [], "verdicts": []})


def _message(report: pytest.TestReport) -> str:
    if report.outcome == "passed":
        return ""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message) if crash else str(report.longrepr or "")
