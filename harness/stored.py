"""Training rows that were converted to MindRecord: what their folder holds, and whether it is whole."""

import math
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import DataError
from harness.files import write_atomically

MANIFEST = "manifest.json"
"""Written last, so that a folder that has none is no conversion that came to its end."""

HELD_OUT = "held_out.npy"
COLUMN = "tokens"

SCHEMA: Literal[1] = 1
OVERHEAD = 64
"""Bytes, at most, that MindRecord adds to a row."""

HEADER = 2**20
PAGE = 2**20
LARGEST = 4 * 10**9
"""Bytes of the largest shard, whatever is allowed: of twice as many, the header could not list all pages."""

_STRICT = ConfigDict(extra="forbid")


class File(BaseModel):
    """One file of the folder."""

    model_config = _STRICT

    name: str = Field(pattern=r"^[\w-]+(\.[\w-]+)*$")
    size: int
    """Bytes."""


class Manifest(BaseModel):
    """What a folder of converted rows holds."""

    model_config = _STRICT

    schema_version: Literal[1] = SCHEMA
    data: str
    """Digest of the text, as of one that is read directly."""

    sequence: int
    """Tokens of a row, less the one that is only asked for."""

    rows: int
    """Of the training split. One more is stored after them, which weighs nothing."""

    shards: list[str]
    """MindRecord files, in the order of their rows."""

    files: list[File]
    """All files but this one."""

    @model_validator(mode="after")
    def _shards_are_files(self) -> "Manifest":
        if not self.shards or not set(self.shards) <= {file.name for file in self.files}:
            raise ValueError("shards must be files of the folder")
        return self

    def write(self, folder: Path) -> None:
        """Leaves the manifest in its folder."""
        write_atomically(folder / MANIFEST, self.model_dump_json(indent=1) + "\n")


def read(folder: Path, data: str) -> Manifest:
    """The manifest of a folder whose files are all there, in their full length.

    Args:
        folder: what ``harness convert`` made.
        data: what the scenario calls it, for messages.

    Raises:
        DataError: there is no such folder, or a file of it is missing, cut short, or another's.
    """
    remedy = "convert the text again with `harness convert`"
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"data={data!r} can't be read: {MANIFEST}: {error.strerror}; {remedy}") from None
    except (UnicodeDecodeError, ValidationError) as error:
        raise DataError(f"data={data!r}: {MANIFEST} is damaged ({str(error).splitlines()[0]}); {remedy}") from None
    for file in manifest.files:
        try:
            size = (folder / file.name).stat().st_size
        except OSError as error:
            raise DataError(f"data={data!r}: {file.name}: {error.strerror}; {remedy}") from None
        if size != file.size:
            raise DataError(f"data={data!r}: {file.name} has {size} bytes of {file.size}; {remedy}")
    return manifest


def held_out(folder: Path, data: str) -> npt.NDArray[np.int32]:
    """The held-out windows of a folder, (windows, sequence + 1).

    Raises:
        DataError: the file is damaged.
    """
    try:
        found: npt.NDArray[np.int32] = np.load(folder / HELD_OUT, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"data={data!r}: {HELD_OUT} is damaged ({error}); convert the text again") from None
    return found


def rows_per_shard(bound: int, tokens: int) -> int:
    """Rows that a shard may hold.

    Args:
        bound: bytes that its file may have.
        tokens: int32 values of a row.

    Raises:
        DataError: not even one row fits.
    """
    # Two pages are begun at once, one for rows and one for what is of variable length.
    begun, row = HEADER + 2 * PAGE, 4 * tokens + OVERHEAD
    if bound < begun + row:
        least = math.ceil((begun + row) / 1e6)
        raise DataError(f"shards of at most {bound} bytes are too small for a row; allow at least {least} MB")
    return (min(bound, LARGEST) - begun) // row
