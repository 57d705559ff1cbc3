"""Several ranks on this machine, started by MindSpore's msrun."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.launch import rank
from harness.launch.ports import reserved_port


@contextmanager
def command(ranks: int, folder: Path, program: list[str], by_node: bool = False) -> Iterator[list[str]]:
    """The command line that starts ``program`` ``ranks`` times; their port is ours until the context ends.

    Args:
        ranks: how many.
        folder: of the run.
        program: command line of a rank.
        by_node: whether msrun binds each rank to a NUMA node.
    """
    with reserved_port() as port:
        yield [
            str(Path(program[0]).parent / "msrun"),
            f"--worker_num={ranks}",
            f"--local_worker_num={ranks}",
            f"--master_port={port}",
            f"--log_dir={folder / 'msrun'}",
            "--join=True",
            *(["--bind_numa=True"] if by_node else []),
            # No worker has this number: msrun then starts no `tail`, which would outlive it.
            f"--tail_worker_log={ranks}",
            rank.__file__,
            str(folder),
            *program,
        ]
