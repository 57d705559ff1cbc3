"""Watches ranks until all have reported, one fails, or the deadline passes; then nothing of theirs is left running."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from harness.errors import LaunchError
from harness.files import tail
from harness.launch.child import alive, start, wait_for_end
from harness.launch.fork import Forking
from harness.launch.rank import SESSION
from harness.launch.request import PROGRESS, report_file

POLL_SECONDS = 0.1
TERM_SECONDS = 2.0
ORPHAN_SECONDS = 2.0
"""How long a rank may go on without a sign after its launcher or wrapper is gone."""

NODE_SECONDS = 10.0
"""How long the nodes of a cluster, of which one failed, are given to end."""

LOG_LINES = 30
_NODE = re.compile(r"(?<=srun: error: )\S+(?=: )")
"""A node's name, as srun tells it."""

Progress = Callable[[int, float], None]
"""Called with the last step's number and loss."""


class RankFailure(LaunchError):
    """A run that did not end well: how each rank ended, and what the failing one wrote last."""

    def __init__(self, message: str, timed_out: bool) -> None:
        super().__init__(message)
        self.timed_out = timed_out


@dataclass(frozen=True)
class Job:
    """Ranks to start in a folder of their own."""

    command: list[str] | Forking
    """What starts them: a launcher's command line, or a fork server."""

    ranks: int
    folder: Path
    environment: Mapping[str, str]
    deadline: float
    """Seconds that the ranks may take."""

    place: Path | None = None
    """Where they work; None for the folder."""

    reports: bool = True
    """Whether each leaves a report; a training of others leaves none."""

    queued: Path | None = None
    """File whose coming starts the clock of the deadline; None starts it at once."""


class Launcher(Protocol):
    """What started the ranks."""

    @property
    def pids(self) -> Sequence[int]:
        """Processes that lead sessions of their own, and from which all that was started descends."""

    def failure(self) -> str:
        """Why it can't keep the ranks any more; empty while it does."""

    def wait(self, seconds: float) -> None:
        """Waits for its end, but not longer than this."""


class _Started:
    """A launcher that is a process of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process, self.pids = process, [process.pid]

    def failure(self) -> str:
        status = self.process.poll()
        return "" if status is None else f"the launcher ended with {status}"

    def wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)


def supervise(job: Job, progress: Progress | None = None) -> None:
    """Starts the ranks and returns when all have reported.

    Raises:
        RankFailure: a rank exited with an error, was killed, ended without a report, or the deadline passed.
    """
    environment = {**job.environment, SESSION: str(os.getpid())}
    launcher: Launcher
    if isinstance(job.command, Forking):
        launcher = job.command.start(environment)
    else:
        with (job.folder / "launcher.log").open("wb") as log, _startable(job.command[0]):
            ending = signal.SIGTERM if job.queued else signal.SIGKILL
            launcher = _Started(start(job.command, job.place or job.folder, environment, log, ending))
    try:
        _watch(job, launcher, progress)
    finally:
        _end(job, launcher)


@contextlib.contextmanager
def _startable(program: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"{Path(program).name} can't be started: {error.strerror}; is MindSpore installed beside this python?"
        raise LaunchError(reason) from None


def _watch(job: Job, launcher: Launcher, progress: Progress | None) -> None:
    end = time.monotonic() + job.deadline
    waits = job.queued is not None
    orphaned: float | None = None
    while True:
        statuses = [_status(job.folder, f"rank-{rank}") for rank in range(job.ranks)]
        failed = [rank for rank, status in enumerate(statuses) if status not in (None, 0)]
        done = [rank for rank, status in enumerate(statuses) if status == 0] if job.reports else []
        silent = [rank for rank in done if not report_file(job.folder, rank).exists()]
        if failed or silent:
            # Ranks that wait for a dead one often fail a moment later, and nodes end: let them, so that all is told.
            launcher.wait(NODE_SECONDS if job.queued else POLL_SECONDS)
            raise _failure(job, "a rank failed" if failed else "a rank ended without a report", (failed or silent)[0])
        if all(status == 0 for status in statuses):
            return
        running = statuses.index(None)
        if _status(job.folder, "scheduler"):
            raise _failure(job, f"the scheduler exited with {_status(job.folder, 'scheduler')}", running)
        now = time.monotonic()
        if waits:
            waits, end = not (job.queued and job.queued.exists()), now + job.deadline
        if now > end:
            raise _failure(job, f"the deadline of {job.deadline:g} s passed", running, launcher)
        lost = _lost(job, launcher, statuses)
        orphaned = (orphaned or now) if lost else None
        if orphaned and now > orphaned + ORPHAN_SECONDS:
            raise _failure(job, lost, running)
        if progress:
            _show(job.folder, progress)
        time.sleep(POLL_SECONDS)


def _status(folder: Path, name: str) -> int | None:
    """Exit status of a process, negative for a signal; None while it runs or where nobody could record it."""
    try:
        return int((folder / f"{name}.exit").read_text())
    except (OSError, ValueError):
        return None


def _wrapper(folder: Path, name: str) -> tuple[int, int] | None:
    """Process id and group of the wrapper around a rank; None before it started."""
    try:
        process, group = (folder / f"{name}.pid").read_text().split()
        return int(process), int(group)
    except (OSError, ValueError):
        return None


def _lost(job: Job, launcher: Launcher, statuses: list[int | None]) -> str:
    """Says who can no longer report; empty while everybody can."""
    if failure := launcher.failure():
        return failure
    for rank, status in enumerate(statuses):
        wrapper = _wrapper(job.folder, f"rank-{rank}")
        if status is None and wrapper and not alive(wrapper[0]):
            return f"rank {rank} vanished"
    return ""


def _show(folder: Path, progress: Progress) -> None:
    with contextlib.suppress(OSError, ValueError):
        step, loss = (folder / PROGRESS).read_text().split()
        progress(int(step), float(loss))


def _failure(job: Job, what: str, guilty: int, hung: Launcher | None = None) -> RankFailure:
    """What to raise. A hung job is ended first, so that its ranks log where they are."""
    said = [_describe(_status(job.folder, f"rank-{rank}")) for rank in range(job.ranks)]
    if hung is not None:
        _end(job, hung)
    logs = (tail(job.folder / f"{name}.log", LOG_LINES) for name in (f"rank-{guilty}", "scheduler", "launcher"))
    lines = next((found for found in logs if found), [])
    ended = "; ".join([*(f"rank {rank} {text}" for rank, text in enumerate(said)), *_nodes(job.folder)])
    step = _last_step(job.folder)
    body = "\n".join(f"  | {_NODE.sub('<node>', line)}" for line in lines)
    return RankFailure(f"{what}: {ended}; {step}\nrank {guilty} wrote last:\n{body}", timed_out=hung is not None)


def _nodes(folder: Path) -> list[str]:
    """How each node of a cluster that has ended did so; its name stays in its file."""
    found = []
    for path in sorted(folder.glob("node-*.exit")):
        status = int(path.read_text().partition(" ")[0])
        found.append(f"node {path.stem.removeprefix('node-')} {_describe(status)}")
    return found


def _last_step(folder: Path) -> str:
    try:
        return f"last step seen: {int((folder / PROGRESS).read_text().split()[0])}"
    except (OSError, ValueError, IndexError):
        return "no step was finished"


def _describe(status: int | None) -> str:
    if status is None:
        return "was still running"
    if status >= 0:
        return f"exited with {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _end(job: Job, launcher: Launcher) -> None:
    """Ends the launcher and all it started, by process group: TERM, then KILL."""
    processes = []
    for root in launcher.pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes += psutil.Process(root).children(recursive=True)
    groups = set(launcher.pids)
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(process.pid))
    names = ["scheduler", *(f"rank-{rank}" for rank in range(job.ranks))]
    groups |= {wrapper[1] for wrapper in (_wrapper(job.folder, name) for name in names) if wrapper}
    groups.discard(os.getpgid(0))
    for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, TERM_SECONDS)):
        for group in groups:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
        if wait_for_end([*launcher.pids, *(process.pid for process in processes)], seconds):
            break
    launcher.wait(0)
