"""Processes of ours: started alike, and those that do a piece of work in a folder and end."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from os import killpg
from pathlib import Path
from typing import BinaryIO

import psutil
from pydantic import BaseModel

from harness.errors import TaskError
from harness.files import tail, write_atomically
from harness.launch.code import Code
from harness.launch.rank import end_with_parent
from harness.locks import device_lock

OUTPUT = "output"
"""File, in the folder, of what the process printed."""

REQUEST = "request.json"
"""File, in the folder, of what it is asked to do."""


def start(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str],
    output: BinaryIO | int,
    ending: int = signal.SIGKILL,
    inherited: Sequence[int] = (),
) -> "subprocess.Popen[bytes]":
    """Starts a process in a session of its own, which the system ends with this one.

    Args:
        command: its command line.
        folder: that it works in.
        environment: of it.
        output: takes what it prints.
        ending: signal by which the system ends it.
        inherited: file descriptors that it keeps.
    """
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=partial(end_with_parent, ending),
        pass_fds=inherited,
    )


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended does not, whether or not its parent knows."""
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_for_end(processes: Sequence[int], seconds: float) -> bool:
    """Whether all of some processes, of whatever parent, have ended within so many seconds."""
    end = time.monotonic() + seconds
    while any(alive(process) for process in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def asked(
    module: str, request: BaseModel, code: Code, environment: dict[str, str], device: str | None
) -> Iterator[Path]:
    """Has a module do what a request asks for; gives the folder that its answer lies in, until the context ends.

    Args:
        module: as for ``run``.
        request: left for it as ``REQUEST``.
        code: whose code.
        environment: of the process.
        device: hardware that it waits for until nobody else of this user trains on it; None waits for nobody.

    Raises:
        TaskError: it failed; says why.
    """
    work = Path(tempfile.mkdtemp(prefix="harness-asked-"))
    try:
        write_atomically(work / REQUEST, request.model_dump_json())
        with device_lock(device) if device else nullcontext():
            failure = run(module, work, code, environment)
        if failure:
            raise TaskError(failure)
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run(module: str, work: Path, code: Code, environment: dict[str, str], deadline: float | None = None) -> str:
    """Runs ``python -m module work`` in ``work``, where MindSpore leaves files of its own.

    Args:
        module: what to run; ends with status 1 and a line ``error: …`` where something is the user's to mend.
        work: the folder.
        code: whose code.
        environment: of the process.
        deadline: seconds that it may take; None for any.

    Returns:
        Why it failed; empty where it did not.
    """
    with (work / OUTPUT).open("wb") as output:
        process = start([str(code.python), "-m", module, str(work)], work, environment, output)
        try:
            status = process.wait(deadline)
        except BaseException as error:
            killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return f"it took more than {deadline:g} s"
            raise
    if not status:
        return ""
    lines = [line for line in tail(work / OUTPUT, 50) if line.strip()]
    told = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (told or lines or [f"exit status {status}"])[-1]
