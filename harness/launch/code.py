"""Whose code the ranks run."""

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Code:
    """A project's folder and the interpreter that runs it."""

    root: Path
    """Folder of the user's modules and relative text files."""

    python: Path = Path(sys.executable)
    first: bool = False
    """Whether packages in ``root`` come before installed ones: in a checkout of another commit, they must."""
