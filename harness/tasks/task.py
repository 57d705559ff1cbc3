"""Tasks that a trained model is asked to do: a JSON Lines file each, a header and then the samples.

{"schema": 1, "task": "licences", "version": 1, "kind": "choice", "language": "en"}
{"id": "kind", "prompt": "WITHOUT WARRANTIES OF ANY", "choices": [" KIND", " MOON"], "answer": 0}
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.errors import TaskError

SCHEMA = 1
Kind = Literal["choice", "cloze", "exact", "generation"]

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)
_Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=80)]


class Header(BaseModel):
    """What all samples of a task have in common."""

    model_config = _STRICT

    schema_: Literal[1] = Field(alias="schema")
    task: _Name
    version: int = Field(ge=1)
    """Raised when samples change: results of two versions are never mixed."""

    kind: Kind
    """``choice``: the likeliest of some endings, by nats a token; ``cloze``: an ending whose every token is the
    likeliest; ``exact``: what is written is compared; ``generation``: what is written is only looked at for variety."""

    language: str
    tokens: int = Field(default=32, ge=1)
    """Most tokens that are written for a sample."""

    stop: str = "\n"
    """Ends what is written; without it an output is truncated."""


class Sample(BaseModel):
    """One question."""

    model_config = _STRICT

    id: _Name
    prompt: str = Field(min_length=1)
    choices: tuple[str, ...] = ()
    answer: int | str | None = None
    """Number of the right choice, the right ending, or nothing where none is right."""

    @property
    def solution(self) -> str:
        """The right ending; empty where none is."""
        if isinstance(self.answer, int):
            return self.choices[self.answer]
        return self.answer or ""


@dataclass(frozen=True)
class Task:
    """A file of samples."""

    header: Header
    samples: tuple[Sample, ...]
    digest: str
    """Of the file's bytes."""

    def prompt(self, sample: Sample, shots: int) -> str:
        """A sample's prompt behind the solved first samples of the task, itself left out."""
        others = [other for other in self.samples if other.id != sample.id][:shots]
        return "".join(f"{other.prompt}{other.solution}\n" for other in others) + sample.prompt


_SAMPLE = TypeAdapter(Sample)


def read(path: Path) -> Task:
    """The task of a file.

    Raises:
        TaskError: it can't be read, is of a newer schema, or a line of it is broken; the message names the line.
    """
    try:
        content = path.read_bytes()
        # Only a line feed ends a line: a text may hold U+2028 and its like.
        lines = content.decode("utf-8").split("\n")
    except OSError as error:
        raise TaskError(f"task {path.name} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"task {path.name}: byte {error.start} is not UTF-8; convert the file to UTF-8") from None
    header = _header(lines[0], path)
    samples: dict[str, Sample] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        sample = _sample(line, f"task {path.name}, line {number}")
        _check(sample, header, f"task {path.name}, line {number}")
        if sample.id in samples:
            raise TaskError(f"task {path.name}, line {number}: id {sample.id!r} was used before; give each its own")
        samples[sample.id] = sample
    if not samples:
        raise TaskError(f"task {path.name} has no samples; add a line for each")
    return Task(header, tuple(samples.values()), hashlib.sha256(content).hexdigest()[:16])


def _header(line: str, path: Path) -> Header:
    try:
        content = json.loads(line)
        version = content.get("schema") if isinstance(content, dict) else None
        if isinstance(version, int) and version > SCHEMA:
            raise TaskError(f"task {path.name} has schema {version}, newer than {SCHEMA}: upgrade mindspore-harness")
        return Header.model_validate(content)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"task {path.name}, line 1 is no header: {_first(error)}") from None


def _sample(line: str, where: str) -> Sample:
    try:
        return _SAMPLE.validate_json(line)
    except ValidationError as error:
        raise TaskError(f"{where} is broken: {_first(error)}") from None


def _check(sample: Sample, header: Header, where: str) -> None:
    answer, choices = sample.answer, sample.choices
    if header.kind == "choice":
        if len(choices) < 2 or not all(choices):
            raise TaskError(f"{where}: a choice needs at least two endings, none of them empty")
        if not isinstance(answer, int) or not 0 <= answer < len(choices):
            raise TaskError(
                f"{where}: answer {answer!r} is out of range; number its choices from 0 to {len(choices) - 1}"
            )
    elif choices:
        raise TaskError(f"{where}: a task of kind {header.kind!r} has no choices")
    elif header.kind == "generation":
        if answer is not None:
            raise TaskError(f"{where}: a task of kind 'generation' has no right answer")
    elif not isinstance(answer, str) or not answer.strip():
        raise TaskError(f"{where}: answer {answer!r} must be a text that is not empty")
    elif header.kind == "exact" and len(answer.encode()) > header.tokens:
        raise TaskError(
            f"{where}: answer {answer!r} has {len(answer.encode())} tokens, and {header.tokens} are written at most; "
            "raise the header's tokens"
        )


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']}".removeprefix(": ")
    return str(error)
