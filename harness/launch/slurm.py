"""Ranks on the nodes that Slurm gives: srun starts one msrun on each."""

import getpass
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.devices import Devices
from harness.errors import LaunchError
from harness.launch.request import STARTED

SECONDS = 60.0
"""Longest time that a question to Slurm may take."""


@contextmanager
def command(ranks: int, nodes: int, hardware: str, folder: Path, program: list[str]) -> Iterator[list[str]]:
    """The command line that queues a job and waits for it; whatever becomes of us, the job is cancelled at the end.

    Partition, account, devices and the like are Slurm's own affair: srun takes them from ``SLURM_PARTITION``,
    ``SLURM_ACCOUNT``, ``SLURM_GRES`` …

    Args:
        ranks: how many, as many on each node.
        nodes: that they are spread over.
        hardware: that they train on.
        folder: of the run; on a file system that the nodes share.
        program: command line of a rank.
    """
    name = f"harness-{uuid.uuid4().hex[:12]}"
    (folder / STARTED).unlink(missing_ok=True)
    try:
        yield [
            "srun",
            f"--job-name={name}",
            f"--nodes={nodes}",
            f"--ntasks={nodes}",
            "--ntasks-per-node=1",
            "--kill-on-bad-exit=1",
            "--export=ALL",
            f"--chdir={folder}",
            program[0],
            "-m",
            "harness.launch.node",
            str(folder),
            str(ranks),
            hardware,
            *program,
        ]
    finally:
        # srun that was killed outright leaves its job behind.
        _ask("scancel", f"--name={name}", f"--user={getpass.getuser()}")


def find(ranks_per_node: int) -> Devices:
    """How many ranks fit at once onto the cluster's nodes, busy or not.

    Args:
        ranks_per_node: on each.
    """
    try:
        listed = _ask("sinfo", "--noheader", "--responding", "--Node", "--format=%N")
    except LaunchError as error:
        return Devices(0, str(error))
    nodes = len(set(listed.split()))
    return Devices(nodes * ranks_per_node, f"{nodes} nodes of {ranks_per_node} ranks each by sinfo")


def _ask(*question: str) -> str:
    """What a command of Slurm's prints.

    Raises:
        LaunchError: it is not installed, fails, or takes too long.
    """
    try:
        done = subprocess.run(question, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise LaunchError(f"--launcher slurm: {question[0]} is not installed here") from None
    except subprocess.TimeoutExpired:
        raise LaunchError(f"--launcher slurm: {question[0]} did not answer within {SECONDS:g} s") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise LaunchError(f"--launcher slurm: {question[0]}: {reason}")
    return done.stdout
