"""``harness baseline``: what is approved, what a session would change, and taking it over."""

import fnmatch
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from harness import results
from harness.devices import HARDWARE
from harness.errors import BaselineError
from harness.gate import approve as approving
from harness.gate import baseline
from harness.gate.baseline import BaselineFile
from harness.gate.verdict import Status, Verdict
from harness.launch.ports import lock_folder
from harness.results import TestResult


@dataclass(frozen=True)
class Change:
    """What approving one test of a session would do."""

    test: TestResult
    candidates: BaselineFile
    scopes: dict[str, set[str]]
    """Label → scopes in which something is not as it was approved."""

    @property
    def verdicts(self) -> list[tuple[str, Verdict]]:
        """Those behind the change."""
        return [
            (self.test.nodeid, verdict)
            for verdict in self.test.last.verdicts
            if verdict.status is not Status.PASS or "environment changed" in verdict.reason
        ]


def stored(folder: Path) -> Iterator[tuple[Path, BaselineFile]]:
    """Every baseline file below a folder, with its path relative to it."""
    for path in sorted(folder.rglob("*.json")):
        content = baseline.read(path)
        if content is not None:
            yield path.relative_to(folder), content


def changes(session: Path, only: str | None = None, everything: bool = False) -> list[Change]:
    """What a session would change.

    Args:
        session: its folder.
        only: glob on test ids or baseline files.
        everything: also tests in which all is as approved.

    Raises:
        ResultsError: the session has no results.
    """
    found = []
    for test in results.read(session).tests:
        if only and not any(
            fnmatch.fnmatch(name, pattern) for name in (test.nodeid, test.baseline) for pattern in (only, f"*{only}*")
        ):
            continue
        candidates = baseline.read(session / "candidates" / test.baseline) if test.baseline else None
        if candidates is None:
            continue
        scopes = {}
        for label in candidates.runs:
            moved = approving.changed_scopes([v for v in test.last.verdicts if v.label == label])
            if everything or moved:
                scopes[label] = {"numeric", "machine"} if everything else moved
        if scopes:
            found.append(Change(test, candidates, scopes))
    return found


def approve(
    session: Path, folder: Path, reason: str, by: str | None = None, only: str | None = None, everything: bool = False
) -> list[Path]:
    """Takes a session's values over into the baselines.

    Args:
        session: folder of the session whose values are taken.
        folder: of the baselines.
        reason: why the values are right.
        by: who approves; git's ``user.name`` by default.
        only: glob on test ids or baseline files.
        everything: also values that are as approved.

    Returns:
        The files written, relative to ``folder``.

    Raises:
        BaselineError: refused: under CI, without a reason or a name, or for a non-finite value; nothing is written.
    """
    if os.environ.get("CI"):
        raise BaselineError("approving is refused under CI: baselines change in a reviewed commit, not in a job")
    stamp = approving.approval(by if by is not None else _git("config", "user.name"), reason, _git("rev-parse", "HEAD"))
    with FileLock(lock_folder() / "approve.lock"):
        merged = [
            (
                Path(c.test.baseline),
                approving.merge(baseline.read(folder / c.test.baseline), c.candidates.runs, stamp, c.scopes),
            )
            for c in changes(session, only, everything)
        ]
        for path, content in merged:
            baseline.write(folder / path, content)
    return [path for path, _ in merged]


def orphans(folder: Path, root: Path) -> list[Path]:
    """Baseline files whose test no longer exists.

    Raises:
        BaselineError: the suites can't be collected, so nothing can be said.
    """
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "suites"]
    collected = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if collected.returncode:
        raise BaselineError(f"the suites can't be collected (pytest exit {collected.returncode}); mend that first")
    known = set()
    for nodeid in collected.stdout.splitlines():
        match = re.search(r"\[(.+)\]$", nodeid)
        names = set(match[1].split("-")) & set(HARDWARE) if match else set()
        known |= {baseline.baseline_path(nodeid, name) for name in names}
    return [path for path, _ in stored(folder) if path not in known]


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
