"""Stands between a launcher and a rank: starts it, keeps its log, and leaves how it ended.

Run as a script and with the standard library alone, because the launcher that starts it may be any, and because the
launcher, not the harness, is its parent: its exit status would be lost otherwise.
"""

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

SESSION = "HARNESS_SESSION"
"""Environment variable with the process id of the session that watches; absent on other machines."""

CORES = "HARNESS_CORES"
"""Environment variable with each rank's cores: ``0,1;2,3``. Without it, ranks run where the system puts them."""

LEFT = "rank-0.left"
"""File of how many processes the first rank left running when it ended; absent where there was none."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 2.0
"""How long what a rank left behind may take to end by itself."""

CANNOT_START = 127
"""Exit status of a rank whose program can't be executed, as a shell's."""

_LIBC = ctypes.CDLL(None)


def end_with_parent(ending: int = signal.SIGKILL) -> None:
    """Asks Linux to end this process when the one that started it is gone.

    Args:
        ending: signal; srun wants one that it can hear, to take its job out of the queue.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, ending)


def main(folder: Path, program: list[str]) -> int:
    """Runs a program as one rank, to its end.

    Args:
        folder: of the run.
        program: command line of the rank.

    Returns:
        Exit status, as a shell counts.
    """
    end_with_parent()
    status = guard(folder)
    if status is None:
        _execute(program)
    return status if status >= 0 else 128 - status


def guard(folder: Path) -> int | None:
    """Forks the rank and stays with it to its end.

    Args:
        folder: of the run; takes the log, this process's id and group, and the rank's exit status.

    Returns:
        None in the rank's own process, which writes into the log and ends with this one; in this process, when the rank
        has ended, how: its exit status, negative for a signal.
    """
    scheduler = os.environ.get("MS_ROLE") == "MS_SCHED"
    name = "scheduler" if scheduler else f"rank-{os.environ.get('RANK_ID', '0')}"
    if not is_watched():
        return 1
    if os.environ.get(CORES) and not scheduler:
        own = os.environ[CORES].split(";")[int(os.environ.get("RANK_ID", "0"))]
        os.sched_setaffinity(0, {int(core) for core in own.split(",")})
    if SESSION in os.environ:
        write(folder / f"{name}.pid", f"{os.getpid()} {os.getpgid(0)}")
    # SIGTERM reaches the whole group; the rank ends by it, and this process stays to say so.
    signal.signal(signal.SIGTERM, lambda *_: None)
    # What the rank starts and leaves behind, in whatever session, becomes this process's child, and is ended here.
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    with (folder / f"{name}.log").open("wb") as log, Path(os.devnull).open("rb") as nothing:
        guarding = os.getpid()
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            end_with_parent()
            if os.getppid() != guarding:
                os.kill(os.getpid(), signal.SIGKILL)
            for number, file in enumerate((nothing, log, log)):
                os.dup2(file.fileno(), number)
            return None
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = end_children()
    if left:
        write(folder / f"{name}.left", f"{left}")
    write(folder / f"{name}.exit", f"{status}")
    return status


def _execute(program: list[str]) -> NoReturn:
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)  # noqa: S606 - what a rank is
    except OSError as error:
        print(f"{program[0]} can't be executed: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(CANNOT_START)


def end_children() -> int:
    """Ends what is left of this process's descendants after a moment of grace; returns how many had to be ended."""
    end = time.monotonic() + GRACE_SECONDS
    killed: set[int] = set()
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        children = _children()
        if not children:
            return len(killed)
        if time.monotonic() > end:
            for process in children:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            killed |= children
        time.sleep(0.05)


def _children() -> set[int]:
    """Process ids; none where the system does not tell."""
    try:
        return {int(number) for number in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
    except OSError:
        return set()


def is_watched() -> bool:
    """Whether the session still lives: it may have died, and its launcher too, before this process could follow.

    On another machine than the session's nobody can tell; there, what started this process ends it.
    """
    if SESSION not in os.environ:
        return True
    try:
        os.kill(int(os.environ[SESSION]), 0)
    except ProcessLookupError:
        return False
    return True


def write(path: Path, text: str) -> None:
    """Leaves a whole file or none."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
