"""One process of ours that does a piece of work in a folder and ends."""

import signal
import subprocess
from os import killpg
from pathlib import Path

from harness.files import tail
from harness.launch.code import Code
from harness.launch.rank import end_with_parent

OUTPUT = "output"
"""File, in the folder, of what the process printed."""


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
        process = subprocess.Popen(
            [str(code.python), "-m", module, str(work)],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
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
