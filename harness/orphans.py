"""Baselines that no test asks for any more, as far as a session can tell from what it collected."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import pytest

from harness.errors import BaselineError
from harness.gate.baseline import baseline_path
from harness.marks import hardware_of

LOGS = "logs"
"""Folder, below the hardware's, of baselines of finished trainings, which no test asks for."""

ASKED = "harness_asked"
"""What an xdist worker sends home: the baseline files that its tests ask for."""

_COLLECTED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class OrphanWatch:
    """Tells at a session's end which baselines nobody asked for."""

    def __init__(self, baselines: Path, strict: bool) -> None:
        """Begins to watch.

        Args:
            baselines: their folder.
            strict: whether a baseline without a test fails the session.
        """
        self.baselines = baselines
        self.strict = strict
        self.asked: set[str] = set()
        self.skipped: set[str] = set()
        self.orphans: list[str] = []

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Notes what a test asks for, before any is deselected."""
        hardware = hardware_of(item)
        if hardware and "gate" in getattr(item, "fixturenames", ()):
            with suppress(BaselineError):
                self.asked.add(str(baseline_path(item.nodeid, hardware)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notes a module that skips itself: what it asks for is not known."""
        if report.skipped:
            self.skipped.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes over what an xdist worker collected."""
        asked, skipped = getattr(node, "workeroutput", {}).get(ASKED, ((), ()))
        self.asked |= set(asked)
        self.skipped |= set(skipped)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Finds the orphans, or, on a worker, sends home what was asked for."""
        config = session.config
        if hasattr(config, "workeroutput"):
            config.workeroutput[ASKED] = sorted(self.asked), sorted(self.skipped)
            return
        option = config.option
        if session.exitstatus not in _COLLECTED or option.ignore or option.ignore_glob or getattr(option, "lf", False):
            return
        files = [path.relative_to(self.baselines) for path in self.baselines.rglob("*.json")]
        arguments = [str(config.invocation_params.dir / argument) for argument in config.args]
        self.orphans = orphans(files, self.asked, self.skipped, arguments, config.rootpath)
        if self.orphans and self.strict:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Names them and the remedy."""
        for orphan in self.orphans:
            text = f"harness: no test asks for baseline {orphan} (harness baseline prune --delete)"
            terminalreporter.write_line(text, red=self.strict, yellow=not self.strict)


def orphans(
    files: Iterable[PurePath], asked: Collection[str], skipped: Iterable[str], arguments: Iterable[str], root: Path
) -> list[str]:
    """The baseline files without a test.

    A baseline of a finished training has none by rights. Any other is without one where its test module is gone, or
    where the session collected the whole module and no test of it names the file. A module that was not collected, or
    by single tests, or skips itself tells nothing.

    Args:
        files: baseline files, relative to the baselines folder.
        asked: files that a collected test asks for.
        skipped: node ids of modules and folders that skip themselves.
        arguments: what pytest was told to collect, relative to ``root`` or absolute.
        root: the project.
    """
    named = [((root / file).resolve(), bool(test)) for file, _, test in (a.partition("::") for a in arguments)]
    unknown = {path for path, single in named if single} | {(root / name).resolve() for name in skipped}
    whole = {path for path, single in named if not single} - unknown
    found = []
    for file in files:
        if is_log(file):
            continue
        module = module_of(file, root)
        places = {module.resolve(), *module.resolve().parents} if module else set()
        known = module is None or (whole & places and not unknown & places)
        if str(file) not in asked and known:
            found.append(str(file))
    return sorted(found)


def is_log(file: PurePath) -> bool:
    """Whether a baseline file is that of a finished training."""
    return len(file.parts) == 3 and file.parts[1] == LOGS


def module_of(file: PurePath, root: Path) -> Path | None:
    """The test module that a baseline file belongs to; None where it is gone."""
    name = PurePath(*file.parts[1:-1]).with_suffix(".py")
    return next((path for path in (root / "suites" / name, root / name) if path.is_file()), None)
