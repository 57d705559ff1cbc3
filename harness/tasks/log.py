"""Results of samples, one a line, as each is done. A killed evaluation goes on with what is missing."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.decoding import Decoding
from harness.errors import ResultsError

LOG = "evaluations.jsonl"


class Setting(BaseModel):
    """What a result depends on: results of two settings are never mixed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    checkpoint: str
    """Digest of the parameters and what the optimizer remembers."""

    step: int = 0
    """Updates after which it was made."""

    task: str
    version: int
    file: str
    """Digest of the task's file."""

    shots: int
    temperature: float
    top_k: int
    top_p: float
    seed: int

    @property
    def decoding(self) -> Decoding:
        """How tokens are chosen."""
        return Decoding(self.temperature, self.top_k, self.top_p)


class Result(BaseModel):
    """What came of one sample."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")

    setting: Setting
    kind: str
    sample: str
    correct: bool | None = None
    """None where nothing is right or wrong."""

    nll: tuple[float, ...] = ()
    """Nats of each ending."""

    output: str | None = None
    """What was written."""

    truncated: bool = False
    """Whether the end of it was not written."""


class Read(NamedTuple):
    """What a log holds."""

    results: list[Result]
    damaged: int
    """Lines that are none: a last one that was cut off, or others'."""


def read(path: Path) -> Read:
    """The results of a log; nothing where there is none.

    Raises:
        ResultsError: it can't be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Read([], 0)
    except OSError as error:
        raise ResultsError(f"{path.name} can't be read: {error.strerror}") from None
    results, damaged = [], 0
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            results.append(Result.model_validate_json(line))
        except ValidationError:
            damaged += 1
    return Read(results, damaged)


def missing(results: Iterable[Result], setting: Setting, samples: Iterable[str]) -> list[str]:
    """The samples of a setting that have no result yet, in their order."""
    done = {result.sample for result in results if result.setting == setting}
    return [sample for sample in samples if sample not in done]


class Log:
    """Appends results; each is on the disk before the next is begun."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, results: Iterable[Result]) -> Iterator[Result]:
        """Appends results as they come, and hands them on.

        A line that an earlier, killed evaluation left without its end is ended first, so that it spoils no other.

        Raises:
            ResultsError: the log can't be written.
        """
        try:
            with self.path.open("ab+") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":
                        file.write(b"\n")
                for result in results:
                    line = json.dumps(result.model_dump(mode="json"), ensure_ascii=True, sort_keys=True)
                    file.write(line.encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                    yield result
        except OSError as error:
            raise ResultsError(f"{self.path.name} can't be written: {error.strerror}; free the disk") from None
