"""A node's part of a job of Slurm's, its msrun: ``python -m harness.launch.node FOLDER RANKS HARDWARE PROGRAM…``."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from harness.launch import rank
from harness.launch.machine import Machine
from harness.launch.rank import SESSION, end_with_parent, write
from harness.launch.request import MASTER, STARTED

POLL_SECONDS = 0.2
WAIT_SECONDS = 120.0
"""How long the other nodes wait for the first."""


def main(folder: Path, ranks: int, hardware: str, program: list[str]) -> int:
    """Runs this node's ranks to their end.

    Args:
        folder: of the run, which the nodes share; takes the node's exit status too.
        ranks: of all nodes.
        hardware: that they train on.
        program: command line of a rank.

    Returns:
        The exit status of a rank that failed, or of msrun.
    """
    node, nodes = int(os.environ["SLURM_NODEID"]), int(os.environ["SLURM_NNODES"])
    # The session that watches is a process of another machine.
    os.environ.pop(SESSION, None)
    if node == 0:
        Machine.here(hardware).write(folder)
        write(folder / MASTER, f"{_address(nodes)}:{_free_port()}")
        write(folder / STARTED, os.environ["SLURM_JOB_ID"])
    address, _, port = _master(folder).rpartition(":")
    own = ranks // nodes
    os.environ["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // own))
    command = [program[0], rank.__file__, str(folder), *program]
    if ranks > 1:
        command = [
            str(Path(program[0]).parent / "msrun"),
            f"--worker_num={ranks}",
            f"--local_worker_num={own}",
            f"--master_addr={address}",
            f"--master_port={port}",
            f"--node_rank={node}",
            f"--log_dir={folder / 'msrun' / str(node)}",
            "--join=True",
            f"--tail_worker_log={ranks}",
            *command[1:],
        ]
    status = _watched(command, [folder / f"rank-{rank}.exit" for rank in range(node * own, (node + 1) * own)])
    status = status if status >= 0 else 128 - status
    write(folder / f"node-{node}.exit", f"{status} {os.environ['SLURMD_NODENAME']}")
    return status


def _watched(command: list[str], exits: list[Path]) -> int:
    """Runs a command until it ends, or a rank fails: msrun would wait for the others.

    Args:
        command: the command.
        exits: files that hold a rank's exit status when it has ended.

    Returns:
        Exit status of the rank that failed, or else of the command.
    """
    process = subprocess.Popen(command, preexec_fn=end_with_parent)
    while process.poll() is None:
        failed = next((status for file in exits if file.exists() and (status := int(file.read_text()))), 0)
        if failed:
            process.kill()
            process.wait()
            return failed
        time.sleep(POLL_SECONDS)
    return process.returncode


def _address(nodes: int) -> str:
    """Of this node, as the others reach it.

    Args:
        nodes: of the job; where it has others, an address that only this node knows is none.
    """
    name = os.environ["SLURMD_NODENAME"]
    words = _scontrol("node", name, "--oneliner").split()
    found = socket.gethostbyname(next((w.partition("=")[2] for w in words if w.startswith("NodeAddr=")), name))
    if nodes > 1 and found.startswith("127."):
        # Many systems resolve their own name to themselves alone: ask which address leads to another node.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((_scontrol("hostnames", os.environ["SLURM_JOB_NODELIST"]).split()[-1], 9))
            found = str(probe.getsockname()[0])
    if nodes > 1 and found.startswith("127."):
        sys.exit(f"node {name} knows itself as {found} only, where no other node reaches it; give it a NodeAddr")
    return found


def _scontrol(*what: str) -> str:
    command = ["scontrol", "show", *what]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _master(folder: Path) -> str:
    """Address and port of the scheduler, when the first node has told them.

    Raises:
        SystemExit: it does not.
    """
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        try:
            return (folder / MASTER).read_text()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"the first node told no address within {WAIT_SECONDS:g} s; do the nodes share {folder.name}?")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
