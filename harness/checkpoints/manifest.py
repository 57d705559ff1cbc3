"""What a checkpoint holds, and whether it is whole. No array is read here."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import CheckpointError
from harness.evaluation import Evaluation
from harness.files import sync, write_atomically

MANIFEST = "manifest.json"
SCHEMA: Literal[1] = 1
_STRICT = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class File(BaseModel):
    """One file of a checkpoint's folder."""

    model_config = _STRICT

    name: str = Field(pattern=r"^[\w-]+(\.[\w-]+)*$")
    size: int
    """Bytes."""

    digest: str
    """Of its content."""

    @classmethod
    def of(cls, path: Path) -> "File":
        """A file as it is now, on the disk and not only on its way there."""
        # Training waits for both, and neither needs the other.
        with ThreadPoolExecutor(1) as pool:
            synced = pool.submit(sync, path)
            found = digest(path)
            synced.result()
        return cls(name=path.name, size=path.stat().st_size, digest=found)


class RankPart(BaseModel):
    """What one rank put in."""

    model_config = _STRICT

    rank: int
    arrays: File
    """Parameters and optimizer states by name."""

    state: File
    """Everything else that it goes on from."""

    shard: int = 0
    shards: int = 1
    finite: bool
    """Whether all its arrays are numbers."""

    cut: dict[str, int] = Field(default_factory=dict)
    """Arrays of which it holds one of ``shards`` parts → the axis that they are cut along."""


class Manifest(BaseModel):
    """A complete checkpoint."""

    model_config = _STRICT

    schema_version: Literal[1] = SCHEMA
    scenario: dict[str, Any]
    mindspore: str
    data: str
    """Digest of the corpus."""

    windows: int
    """Rows of its training split."""

    step: int
    """Updates that were made."""

    samples: int
    """Rows that they were made of."""

    learning_rate: float
    """Of the last update."""

    loss_scale: float
    """Factor of the loss that was differentiated."""

    reason: Literal["cadence", "alarm"]
    evaluation: Evaluation | None = None
    """On all held-out windows, where the scenario evaluates."""

    ranks: list[RankPart]
    seal: str = ""
    """Digest of all the rest; set when it is written."""

    @property
    def is_finite(self) -> bool:
        """Whether all arrays are numbers."""
        return all(part.finite for part in self.ranks)

    @property
    def digest(self) -> str:
        """Of all arrays; names the checkpoint in results."""
        return hashlib.sha256("".join(part.arrays.digest for part in self.ranks).encode()).hexdigest()[:16]

    def write(self, folder: Path) -> None:
        """Leaves the manifest beside what it lists."""
        sealed = self.model_copy(update={"seal": self.expected_seal()})
        write_atomically(folder / MANIFEST, sealed.model_dump_json(indent=1) + "\n")

    def expected_seal(self) -> str:
        """What the seal must be."""
        return hashlib.sha256(self.model_dump_json(exclude={"seal"}).encode()).hexdigest()[:16]


def digest(path: Path) -> str:
    """The first 16 digits of a file's SHA-256."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            found.update(block)
    return found.hexdigest()[:16]


def read_manifest(folder: Path) -> Manifest:
    """The manifest alone; what it lists may be damaged.

    Raises:
        CheckpointError: there is none, or it is damaged, or newer than this harness.
    """
    try:
        found = Manifest.model_validate_json((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{folder.name}: {MANIFEST}: {error.strerror}; it is no complete checkpoint") from None
    except UnicodeDecodeError:
        raise CheckpointError(f"{folder.name}: {MANIFEST} is damaged: it is not UTF-8") from None
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"] == ("schema_version",):
            raise CheckpointError(
                f"{folder.name}: its schema_version is {first['input']!r}, this harness reads {SCHEMA}; use the one "
                "that wrote it"
            ) from None
        place = ".".join(str(each) for each in first["loc"])
        raise CheckpointError(f"{folder.name}: {MANIFEST} is damaged ({place or 'JSON'}: {first['msg']})") from None
    if found.seal != found.expected_seal():
        raise CheckpointError(f"{folder.name}: {MANIFEST} is not what was written (seal {found.seal or 'missing'})")
    return found


def read(folder: Path) -> Manifest:
    """The manifest of a checkpoint whose files are all as they were written.

    Raises:
        CheckpointError: a file is missing, cut short, or changed.
    """
    manifest = read_manifest(folder)
    for part in manifest.ranks:
        for file in (part.arrays, part.state):
            path = folder / file.name
            try:
                size = path.stat().st_size
                found = digest(path) if size == file.size else ""
            except OSError as error:
                raise CheckpointError(f"{folder.name}: {file.name}: {error.strerror}") from None
            if size != file.size:
                raise CheckpointError(f"{folder.name}: {file.name} has {size} bytes of {file.size}")
            if found != file.digest:
                raise CheckpointError(f"{folder.name}: {file.name} is not what was saved (digest {found})")
    return manifest
