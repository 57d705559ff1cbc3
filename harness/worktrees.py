"""Clean checkouts of a repository beside its working tree, gone when their session is."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from harness.errors import LaunchError
from harness.provenance import git

ALIVE = "alive.lock"


class Worktrees:
    """The worktrees of one session, below ``worktrees/`` of the results folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        """Names them; nothing is made yet.

        Args:
            root: the project, anywhere in a repository.
            folder: the session's own; its parent holds those of other sessions.
        """
        self.root = root
        self.folder = folder
        self._alive = FileLock(folder / ALIVE)

    def open(self) -> None:
        """Takes the folder, and removes what killed sessions left behind."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._alive.acquire()
        for other in self.folder.parent.iterdir():
            if other != self.folder and other.is_dir():
                try:
                    with FileLock(other / ALIVE).acquire(timeout=0):
                        self._remove(other)
                except Timeout:
                    continue

    def close(self) -> None:
        """Removes the session's worktrees."""
        self._remove(self.folder)
        self._alive.release()

    def checkout(self, name: str, commit: Callable[[], str]) -> Path:
        """The project's folder in a clean worktree of a commit; made once, also for several processes.

        Args:
            name: of the worktree.
            commit: names the commit, asked only when the worktree is made.

        Raises:
            LaunchError: git can't make it.
        """
        path = self.folder / name
        with FileLock(self.folder / f"{name}.lock"):
            if not path.exists():
                self._git("worktree", "add", "--detach", "--force", str(path), commit())
        return path / self.root.resolve().relative_to(self._git("rev-parse", "--show-toplevel"))

    def resolve(self, reference: str) -> str:
        """The commit that a reference names; empty where there is none."""
        if reference.startswith("-"):
            return ""
        return git("-C", str(self.root), "rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}")

    def snapshot(self) -> str:
        """A commit of the working tree as it is, tracked files only; HEAD where nothing was changed."""
        identity = ("-c", "user.name=harness", "-c", "user.email=harness@localhost")
        return self._git(*identity, "stash", "create") or self._git("rev-parse", "HEAD")

    def _remove(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        git("-C", str(self.root), "worktree", "prune")

    def _git(self, *arguments: str) -> str:
        """Output of a git command that must succeed."""
        try:
            done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=False)
        except OSError as error:
            raise LaunchError(f"git can't be run: {error.strerror}") from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            command = next(word for word in arguments if word[0] != "-" and "=" not in word)
            raise LaunchError(f"git {command} failed: {last}")
        return done.stdout.strip()
