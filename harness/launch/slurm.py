"""Ranks on the nodes that Slurm gives: srun starts one msrun on each."""

import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.devices import Devices
from harness.errors import LaunchError
from harness.launch.request import STARTED

USABLE = "idle,alloc,mix,comp"
"""States of nodes that jobs may get."""

_CPUS = {"SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK"}
"""Variables that say how many cores a node's ranks get; one each otherwise."""

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
            *([] if _CPUS.intersection(os.environ) else [f"--cpus-per-task={ranks // nodes}"]),
            program[0],
            "-m",
            "harness.launch.node",
            str(folder),
            str(ranks),
            hardware,
            *program,
        ]
    finally:
        _cancel(name, folder)


def _cancel(name: str, folder: Path) -> None:
    """Ends a job, if it still is one: srun that was killed outright leaves it behind.

    Where Slurm can't be reached for long, that is written down; what became of the run counts for more.
    """
    for pause in (1.0, 3.0, 0.0):
        try:
            _ask("scancel", f"--name={name}")
            return
        except LaunchError as error:
            problem = str(error)
            time.sleep(pause)
    with (folder / "launcher.log").open("a", encoding="utf-8") as log:
        log.write(f"job {name} may go on, see squeue: {problem}\n")


def find(ranks_per_node: int) -> Devices:
    """How many ranks fit at once onto the cluster's usable nodes, busy or not.

    Args:
        ranks_per_node: on each.

    Raises:
        LaunchError: Slurm is not there, or does not answer.
    """
    partition = os.environ.get("SLURM_PARTITION")
    own = [f"--partition={partition}"] if partition else []
    listed = _ask("sinfo", "--noheader", "--responding", f"--states={USABLE}", "--Node", "--format=%N", *own)
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
