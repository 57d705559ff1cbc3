"""Trained weights on disk, for who evaluates them: one safetensors file and a manifest, written last."""

import hashlib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import DataError
from harness.files import write_atomically

FOLDER = "weights"
FILE = "weights.safetensors"
MANIFEST = "manifest.json"
SCHEMA: Literal[1] = 1


class Manifest(BaseModel):
    """What the weights are of."""

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = SCHEMA
    scenario: dict[str, Any]
    step: int
    """Updates that were made."""

    size: int
    """Bytes of the file."""

    digest: str
    """Of its content; names the checkpoint in results."""

    def write(self, folder: Path) -> None:
        """Leaves the manifest beside the weights."""
        write_atomically(folder / MANIFEST, self.model_dump_json(indent=1) + "\n")


def digest(path: Path) -> str:
    """The first 16 digits of a file's SHA-256."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            found.update(block)
    return found.hexdigest()[:16]


def read(folder: Path) -> Manifest:
    """The manifest of a folder whose weights are whole.

    Raises:
        DataError: there are no weights, they are not complete, or damaged.
    """
    where = f"weights {folder.name!r}"
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_text(encoding="utf-8"))
        size = (folder / FILE).stat().st_size
        found = digest(folder / FILE) if size == manifest.size else ""
    except OSError as error:
        name = Path(error.filename).name if error.filename else "a file"
        raise DataError(f"{where}: {name}: {error.strerror}; a run with keep_weights=True leaves them") from None
    except (UnicodeDecodeError, ValidationError) as error:
        raise DataError(f"{where}: {MANIFEST} is damaged ({str(error).splitlines()[0]}); train again") from None
    if size != manifest.size:
        raise DataError(f"{where}: {FILE} has {size} bytes of {manifest.size}; train again")
    if found != manifest.digest:
        raise DataError(f"{where}: {FILE} is not what was saved (digest {found}, not {manifest.digest}); train again")
    return manifest
