"""One rank, started directly."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.launch import rank


@contextmanager
def command(ranks: int, folder: Path, program: list[str]) -> Iterator[list[str]]:
    """The command line that starts ``program`` as the one rank of ``folder``."""
    if ranks != 1:
        raise ValueError(f"the local launcher starts one rank, not {ranks}")
    yield [sys.executable, rank.__file__, str(folder), *program]
