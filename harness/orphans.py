"""Baselines that no test asks for any more, as far as a session can tell from what it collected."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import pytest

from harness.errors import BaselineError
from harness.gate.baseline import baseline_path
from harness.marks import hardware_of

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
        self.orphans: list[str] = []

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Notes what a test asks for, before any is deselected."""
        hardware = hardware_of(item)
        if hardware and "gate" in getattr(item, "fixturenames", ()):
            with suppress(BaselineError):
                self.asked.add(str(baseline_path(item.nodeid, hardware)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes over what an xdist worker collected."""
        self.asked |= set(getattr(node, "workeroutput", {}).get(ASKED, ()))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Finds the orphans, or, on a worker, sends home what was asked for."""
        config = session.config
        if hasattr(config, "workeroutput"):
            config.workeroutput[ASKED] = sorted(self.asked)
            return
        if session.exitstatus not in _COLLECTED or config.option.ignore or config.option.ignore_glob:
            return
        files = [path.relative_to(self.baselines) for path in self.baselines.rglob("*.json")]
        self.orphans = orphans(files, self.asked, map(str, config.args), config.rootpath)
        if self.orphans and self.strict:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Names them and the remedy."""
        for orphan in self.orphans:
            text = f"harness: no test asks for baseline {orphan} (harness baseline prune --delete)"
            terminalreporter.write_line(text, red=self.strict, yellow=not self.strict)


def orphans(files: Iterable[PurePath], asked: Collection[str], arguments: Iterable[str], root: Path) -> list[str]:
    """The baseline files without a test.

    A file is one where its test module is gone, or where the session collected the whole module and no test of it names
    the file. A module that the session did not collect, or collected by single tests, tells nothing.

    Args:
        files: baseline files, relative to the baselines folder.
        asked: files that a collected test asks for.
        arguments: what pytest was told to collect, relative to ``root`` or absolute.
        root: the project.
    """
    named = [((root / file).resolve(), bool(test)) for file, _, test in (a.partition("::") for a in arguments)]
    whole = {path for path, single in named if not single} - {path for path, single in named if single}
    found = []
    for file in files:
        name = PurePath(*file.parts[1:-1]).with_suffix(".py")
        module = next((path for path in (root / "suites" / name, root / name) if path.is_file()), None)
        collected = module is None or whole & {module.resolve(), *module.resolve().parents}
        if str(file) not in asked and collected:
            found.append(str(file))
    return sorted(found)
