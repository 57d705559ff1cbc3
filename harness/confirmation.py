"""Runs base and head in turn, from clean checkouts, for the times that a session suspects."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.anonymity import anonymous
from harness.errors import HarnessError, LaunchError
from harness.faults import Fault
from harness.gate.confirm import Side, confirm
from harness.gate.policy import Policy
from harness.gate.verdict import Verdict
from harness.launch.code import Code
from harness.measure import measure
from harness.metrics.registry import Metric
from harness.run import Run
from harness.session import Session
from harness.worktrees import Worktrees

NEEDED = ("mindspore", "numpy", "pydantic", "psutil", "harness")
_LOOK = """
import importlib.util, importlib.metadata
missing = [name for name in {} if importlib.util.find_spec(name) is None]
print("-" if "mindspore" in missing else importlib.metadata.version("mindspore"), *missing)
"""


class Confirmer:
    """``--confirm-against``: knows the base, and measures either side of a run."""

    def __init__(self, session: Session, against: str) -> None:
        """Finds out what the base is.

        Args:
            session: gives the project's folder and where runs are kept.
            against: a git reference, or an interpreter of another environment.

        Raises:
            LaunchError: it is neither, the project is in no repository, or the interpreter lacks a package.
        """
        self.session = session
        self.against = against
        self.worktrees = Worktrees(session.root, session.folder.parent.parent / "worktrees" / session.folder.name)
        if not against:
            raise LaunchError("--confirm-against names nothing; give a branch, a tag, a commit or a python")
        if not self.worktrees.resolve("HEAD"):
            raise LaunchError("--confirm-against runs both sides from clean checkouts: the project needs a git commit")
        self.commit = self.worktrees.resolve(against)
        found = None if self.commit else shutil.which(against)
        if not self.commit and not found:
            raise LaunchError(
                f"--confirm-against {against!r}: no commit and no interpreter of that name; fetch it (git fetch), or "
                "name a branch, a tag, a commit or a python"
            )
        self.python = Path(found).absolute() if found else Path(sys.executable)
        if found:
            self.against = f"MindSpore {_mindspore_of(self.python, session.root)}"

    def __call__(self, hardware: str, run: Run, suspicions: Sequence[tuple[Verdict, Metric, Policy]]) -> list[Verdict]:
        """Settles the suspicions against one run; see ``harness.gate.confirm.confirm``."""
        return confirm(suspicions, lambda side: self._measure(side, hardware, run), self.against)

    def _measure(self, side: Side, hardware: str, run: Run) -> Run:
        """Trains one side once; a planted fault is head's.

        Raises:
            LaunchError: it failed.
        """
        session = self.session
        scenario = run.description
        fault = Fault.parse(run.fault) if run.fault and side == "head" else None
        folder = session.folder / "confirm" / f"{os.getpid()}-{side}"
        try:
            code = self._code(side)
            deadline = session.deadline_of(scenario)
            # Another interpreter's ranks are never forked, and both sides are to start alike.
            placement = session.placement if self.commit else replace(session.placement, start="fresh")
            return measure(scenario, hardware, code, folder, deadline, fault, session.show_progress, placement)
        except HarnessError as error:
            raise LaunchError(anonymous(str(error), session.root)) from None

    def _code(self, side: Side) -> Code:
        tree = self.session.root
        if side == "base" and self.commit:
            return Code(self.worktrees.checkout("base", lambda: self.commit), instead_of=tree)
        head = self.worktrees.checkout("head", self.worktrees.snapshot)
        return Code(head, self.python if side == "base" else Path(sys.executable), instead_of=tree)


def _mindspore_of(python: Path, root: Path) -> str:
    """The version of MindSpore that another interpreter has.

    Raises:
        LaunchError: it can't be run, or lacks what a rank needs.
    """
    try:
        environment = {**os.environ, "PYTHONPATH": str(root)}
        command = [str(python), "-c", _LOOK.format(NEEDED)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(f"--confirm-against {python.name}: it can't be run: {type(error).__name__}") from None
    version, _, missing = done.stdout.strip().partition(" ")
    if done.returncode or missing:
        lacks = ", ".join(missing.split()) or f"exit {done.returncode}"
        raise LaunchError(f"--confirm-against {python.name} has no {lacks}; install mindspore-harness there")
    return version
