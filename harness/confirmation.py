"""Runs base and head in turn, from clean checkouts, for the times that a session suspects."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
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
_MISSING = "import importlib.util as u; print(*[m for m in {} if u.find_spec(m) is None])"


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
            self.against = Path(found).parent.parent.name
            _check_interpreter(self.python, session.root)

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
            return measure(scenario, hardware, code, folder, session.deadline, fault, session.show_progress)
        except HarnessError as error:
            raise LaunchError(anonymous(str(error), session.root)) from None

    def _code(self, side: Side) -> Code:
        if side == "base" and self.commit:
            return Code(self.worktrees.checkout("base", self.commit), first=True)
        head = self.worktrees.checkout("head", self.worktrees.snapshot())
        return Code(head, self.python if side == "base" else Path(sys.executable), first=True)


def _check_interpreter(python: Path, root: Path) -> None:
    try:
        environment = {**os.environ, "PYTHONPATH": str(root)}
        command = [str(python), "-c", _MISSING.format(NEEDED)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(f"--confirm-against {python.name}: it can't be run: {error}") from None
    if done.returncode or done.stdout.strip():
        missing = done.stdout.split() or [f"exit {done.returncode}"]
        raise LaunchError(
            f"--confirm-against {python.name} has no {', '.join(missing)}; install mindspore-harness there"
        )
