"""Runs a training of others: its own command, watched as ours are, and what it leaves read."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness.errors import LaunchError, ResultsError, ScenarioError
from harness.external import FOLDER, External
from harness.launch import local, rank_environment
from harness.launch.code import Code
from harness.launch.machine import Machine
from harness.launch.rank import LEFT
from harness.launch.supervise import Job, supervise
from harness.observed import observed
from harness.readers.place import read
from harness.run import Run

_VERSION = "from importlib.metadata import version; print(version('mindspore'))"


def run_command(external: External, hardware: str, code: Code, folder: Path, deadline: float) -> Run:
    """Runs a command to its end, and reads its curves.

    Args:
        external: the command.
        hardware: that it trains on.
        code: whose code; the command works in its folder.
        folder: the run's own.
        deadline: seconds that it may take.

    Raises:
        ScenarioError: there is no such program, or nothing to run.
        LaunchError: it failed, did not finish in time, or left no curve.
    """
    if not external.command:
        raise ScenarioError(f"{external.title}: what is finished can't be run; give a command")
    folder.mkdir(parents=True)
    folder = folder.resolve()
    program = [part.replace(FOLDER, str(folder)) for part in external.command]
    environment = rank_environment(external.ranks, code)
    program[0] = _program(program[0], code, environment["PATH"])
    machine = Machine.here(hardware)
    with local.command(1, folder, program) as command:
        supervise(Job(command, 1, folder, environment, deadline, code.root.resolve(), reports=False))
    host = machine.host(hardware, "" if hardware == "cpu" else hardware, "none")
    left = folder / LEFT
    if left.exists():
        raise LaunchError(
            f"{external.title} ended and left {left.read_text()} processes running, which were ended; have it wait for "
            "them (msrun: --join=True)"
        )
    try:
        return observed(read(_output(external, folder)), external, host, _mindspore(code.python))
    except ResultsError as error:
        raise LaunchError(f"{external.title} ended well and left no curve: {error}") from None


def _program(name: str, code: Code, path: str) -> str:
    """The file of a command's first word: an interpreter is that of the code, a name with a slash is the project's.

    Raises:
        ScenarioError: there is none, or it can't be executed.
    """
    if name in ("python", "python3"):
        return str(code.python)
    if "/" in name:
        file = code.root.resolve() / name
        if not os.access(file, os.X_OK) or not file.is_file():
            raise ScenarioError(f"command {name!r} is no executable file of the project; see its name and chmod +x it")
        return str(file)
    found = shutil.which(name, path=path)
    if not found:
        raise ScenarioError(
            f"command {name!r} is not found; name a program on PATH, or a file of the project as ./{name}"
        )
    ours = Path(sys.executable).parent
    if code.python.parent != ours and Path(found).parent == ours:
        raise ScenarioError(f"command {name!r} is missing in the environment that is compared; install it there")
    return found


def _output(external: External, folder: Path) -> Path:
    """Where the curves are.

    Raises:
        ResultsError: nothing, or more than one thing, is of that name.
    """
    if not external.output:
        return folder / "rank-0.log"
    found = sorted(folder.glob(external.output))
    if len(found) == 1:
        return found[0]
    names = ", ".join(str(path.relative_to(folder)) for path in (found or sorted(folder.rglob("*"))) if path.is_file())
    what = f"{len(found)} files are" if found else "nothing is"
    raise ResultsError(f"{what} like output={external.output!r} in the run's folder, which holds {names[:300]}")


def _mindspore(python: Path) -> str:
    done = subprocess.run([str(python), "-c", _VERSION], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip() or "unknown"
