"""Says from the start, and after each test, how much of a session is left."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

from harness.devices import HARDWARE
from harness.marks import hardware_of
from harness.report.outlook import Outlook


class ProgressWatch:
    """Listens where all tests of a session come together."""

    def __init__(self, config: pytest.Config, history: str | None) -> None:
        """Knows nothing yet.

        Args:
            config: of the session.
            history: URL of the database of earlier sessions; None for none.
        """
        self.config = config
        self.history = history
        self.outlook: Outlook | None = None
        self.verbosity = config.option.verbose
        """As it was asked for: in CI, each test has a line of its own all the same."""

    def begin(self, tests: Iterable[str], workers: int = 1) -> str:
        """Takes the tests of a session that train; returns what is to be said of them, empty where there are none."""
        tests = list(tests)
        if not tests or self.config.option.collectonly:
            return ""
        known = {}
        if self.history is not None:
            from harness.history.session import courses

            known = {test: (course.seconds, course.runs) for test, course in courses(self.history).items()}
        self.outlook = Outlook.of(tests, known, workers)
        if os.environ.get("CI") and self.config.option.verbose == 0:
            self.config.option.verbose = 1
        return f"harness: {self.outlook}"

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Says what is ahead; with workers, they collect, and this process has no items."""
        text = self.begin(item.nodeid for item in items if hardware_of(item) and not item.get_closest_marker("skip"))
        return [text] if text else []

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """The same, when the first worker has collected.

        Only names arrive here; where few end in a hardware's, as parameters of other tests may, nothing is said.
        """
        if self.outlook is None:
            found = [test for test in ids if test.endswith(tuple(f"{name}]" for name in HARDWARE))]
            text = self.begin(found if 2 * len(found) > len(ids) else [], len(self.config.option.tx or ["one"]))
            terminal = self.config.pluginmanager.getplugin("terminalreporter")
            if text and terminal:
                terminal.ensure_newline()
                terminal.write_line(text)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes a test that has ended off the list."""
        if self.outlook and (report.when == "call" or report.outcome != "passed"):
            self.outlook.done(report.nodeid, report.duration)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Where each test has a line, says there what is left."""
        if not self.outlook or report.when != "call" or report.outcome != "passed" or hasattr(report, "wasxfail"):
            return None
        return "passed", ".", f"PASSED ({self.outlook})"
