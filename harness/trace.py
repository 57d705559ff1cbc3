"""What ranks held at chosen steps, layer by layer, short enough to be kept: the schema of traces."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import ResultsError

Kind = Literal["rows", "parameter", "activation", "gradient"]
KINDS: tuple[Kind, ...] = ("rows", "parameter", "activation", "gradient")
"""In the order in which one follows from the other within a step."""

_STRICT = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class Piece(BaseModel):
    """A row of the batch, what a layer made of it, or a rank's part of a parameter or gradient."""

    model_config = _STRICT

    place: int
    """Number of the row in the global batch, or of the shard."""

    digest: int
    """CRC-32 of its bytes."""

    norm: float
    sketch: list[float]
    """As ``harness.metrics.sketch``; those of all shards add up. Empty for rows of tokens."""


class Layer(BaseModel):
    """One name's pieces on a rank."""

    model_config = _STRICT

    kind: Kind
    name: str
    shards: int = 1
    pieces: list[Piece]


class RankStep(BaseModel):
    """What one rank held at one step, in the order in which it came about."""

    model_config = _STRICT

    rank: int
    step: int
    layers: list[Layer] = Field(default_factory=list)


Trace = dict[int, list[RankStep]]
"""Step → ranks."""


def file(folder: Path, rank: int) -> Path:
    """Where a rank writes its trace, a step a line."""
    return folder / f"trace-{rank}.jsonl"


def read(folder: Path) -> Trace:
    """The trace of a run; a last line that was cut off is left out.

    Raises:
        ResultsError: there is none, or it is damaged.
    """
    found: Trace = {}
    for path in sorted(folder.glob("trace-*.jsonl")):
        try:
            # What stands behind the last line's end was cut off when the rank died.
            *lines, _ = path.read_bytes().split(b"\n")
        except OSError as error:
            raise ResultsError(f"{path.name} can't be read: {error.strerror}") from None
        for number, line in enumerate(lines, start=1):
            try:
                step = RankStep.model_validate_json(line)
            except ValidationError:
                raise ResultsError(f"{path.name}, line {number} is damaged; run it again") from None
            found.setdefault(step.step, []).append(step)
    if not found:
        raise ResultsError(f"{folder.name} holds no trace; run it with trace_every=N")
    return {step: sorted(ranks, key=lambda each: each.rank) for step, ranks in sorted(found.items())}
