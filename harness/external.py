"""Training that is somebody else's: a command to run, or what a finished one left."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from json import dumps
from pathlib import PurePosixPath
from typing import Any

from harness.errors import ScenarioError

KIND = "external"
FOLDER = "{folder}"
"""In a command: the run's own folder, where what the training leaves is looked for."""


@dataclass(frozen=True)
class External:
    """What identifies such a training, so that a baseline holds for it alone.

    Raises:
        ScenarioError: a value can't work.
    """

    command: Sequence[str] = ()
    """Program and arguments, run in the project's folder; empty where a finished log is read."""

    output: str = ""
    """File, glob or TensorBoard folder, below the run's folder, that has the curves; empty for what it prints."""

    name: str = ""
    """Of a finished training."""

    ranks: int = 1
    """Devices that it takes."""

    tokens_per_step: int | None = None
    """Tokens of an update; without it, there is no throughput."""

    def __post_init__(self) -> None:
        parts = self.command
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) and part for part in parts):
            raise ScenarioError(f"command must be a list of texts like ['python', 'train.py'], not {self.command!r}")
        for part in parts:
            if re.search(r"(^|=)/", part):
                raise ScenarioError(
                    f"command holds {part!r}: it would be another's on another machine, and the same file in every "
                    f"checkout; name a program on PATH, a file of the project (./run.sh), or {FOLDER}"
                )
        object.__setattr__(self, "command", tuple(parts))
        if bool(self.command) == bool(self.name):
            raise ScenarioError("training of others has a command, or, where it is finished, a name")
        if not isinstance(self.output, str):
            raise ScenarioError(f"output must be a text, not {self.output!r}")
        path = PurePosixPath(self.output)
        if self.output and (not path.parts or any("**" in part and part != "**" for part in path.parts)):
            raise ScenarioError(f"output={self.output!r} names no file; use a name or a glob like 'logs/*.log'")
        if path.is_absolute() or ".." in path.parts:
            raise ScenarioError(f"output={self.output!r} must lie below the run's folder; pass {FOLDER} to the command")
        for name in ("ranks", "tokens_per_step"):
            value = getattr(self, name)
            optional = name == "tokens_per_step" and value is None
            if not optional and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ScenarioError(f"{name} must be a whole number of at least 1, not {value!r}")

    @property
    def title(self) -> str:
        """A name for reports."""
        return self.name or " ".join(self.command)

    @property
    def hash(self) -> str:
        """Content hash, 16 hexadecimal digits; of the fields that differ from their default."""
        defaults = {field.name: field.default for field in fields(self)}
        content = {name: value for name, value in asdict(self).items() if value != defaults[name]}
        return sha256(dumps({"kind": KIND, **content}, sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": KIND, **asdict(self), "command": list(self.command)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "External":
        """What ``to_dict`` described.

        Raises:
            ScenarioError: a field is unknown or its value can't work.
        """
        try:
            return cls(**{name: value for name, value in content.items() if name != "kind"})
        except TypeError as error:
            raise ScenarioError(f"no training of others: {error}") from None
