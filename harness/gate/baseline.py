"""Approved values on disk: one JSON file a test, sorted, one value a line."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.environment import Environment
from harness.errors import BaselineError
from harness.files import write_atomically
from harness.run import Run

SCHEMA: Literal[1] = 1

_STRICT = ConfigDict(extra="forbid", ser_json_inf_nan="strings")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


class Approval(BaseModel):
    """Who accepted these values, and why."""

    model_config = _STRICT

    by: str
    when: str
    """UTC, ISO 8601."""

    reason: str
    commit: str
    """Commit at which the values were measured; ``""`` outside a repository."""

    replaces: dict[str, float] = Field(default_factory=dict)
    """Values that this approval changed, as they were: scalars, medians of times, last points of curves."""


class Times(BaseModel):
    """``machine`` values on one kind of machine."""

    model_config = _STRICT

    metrics: dict[str, list[float]]
    """One sample a run. In a candidate, a time that was checked and not properly measured has none."""

    environment: Environment | None = None
    """Where the samples were taken; None in files that are older than this field: then as the record's."""

    approved: Approval | None = None
    history: list[Approval] = Field(default_factory=list)
    """Approvals before that one, newest first, each with the values that it replaced."""


class Record(BaseModel):
    """Values of one labelled run of a test; a candidate until it carries an approval."""

    model_config = _STRICT

    scenario_hash: str
    scenario: dict[str, Any]
    """For the message when another scenario comes along."""

    environment: Environment
    metrics: dict[str, float] = Field(default_factory=dict)
    """``numeric`` and ``ratio`` scalars."""

    curves: dict[str, list[float]] = Field(default_factory=dict)
    steps: dict[str, list[int]] = Field(default_factory=dict)
    """Of each curve of a training of others, the steps that its values belong to."""

    machine: str | None = None
    """Key of the kind of machine that the numeric values were measured on; None in older files."""

    machines: dict[str, Times] = Field(default_factory=dict)
    """Machine key → the times measured there."""

    approved: Approval | None = None
    """Of the numeric values; times have an approval of their own."""

    history: list[Approval] = Field(default_factory=list)
    """Approvals before that one, newest first, each with the values that it replaced."""

    @model_validator(mode="after")
    def _a_step_for_each_value(self) -> "Record":
        for name, steps in self.steps.items():
            if len(steps) != len(self.curves.get(name, ())):
                raise ValueError(f"{name} has {len(self.curves.get(name, ()))} values of {len(steps)} steps")
        return self


class BaselineFile(BaseModel):
    """All labelled runs of one test."""

    model_config = _STRICT

    schema_version: Literal[1] = SCHEMA
    runs: dict[str, Record]


def baseline_path(nodeid: str, hardware: str) -> Path:
    """Where a test's baseline stands, relative to the baselines folder.

    ``suites/training/test_loss.py::test_falls[cpu]`` → ``cpu/training/test_loss/test_falls.json``. Parameters other
    than the hardware become part of the file's name.

    Raises:
        BaselineError: a part would leave the folder or is no file name.
    """
    file, _, rest = nodeid.partition("::")
    module = Path(file).with_suffix("")
    parts = module.parts[1:] if module.parts[:1] == ("suites",) else module.parts
    name, _, parameters = rest.partition("[")
    file_name = name.replace("::", ".")
    # Every instance has the hardware among its parameters: it stands in the folder's name, the others in the file's.
    others = re.sub(rf"^{hardware}(-|$)|-{hardware}(?=-|$)", "", parameters.removesuffix("]"), count=1)
    if others:
        plain = re.sub(r"[^A-Za-z0-9_.+-]", "_", others)
        digest = "" if plain == others else f"-{hashlib.sha256(others.encode()).hexdigest()[:6]}"
        file_name += f"-{plain}{digest}"
    for part in (*parts, file_name):
        if not _NAME.fullmatch(part):
            raise BaselineError(f"{nodeid!r} can't name a baseline file: {part!r} is not a plain file name")
    return Path(hardware, *parts, f"{file_name}.json")


def read(path: Path) -> BaselineFile | None:
    """A baseline file; None where there is none.

    Raises:
        BaselineError: it is empty, corrupt, or of a newer schema.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BaselineError(f"baseline {path.name} can't be read: {error}; restore it from version control") from None
    try:
        content = json.loads(text)
        version = content["schema_version"] if isinstance(content, dict) else None
        if isinstance(version, int | float) and version > SCHEMA:
            raise BaselineError(
                f"baseline {path.name} has schema {version}, newer than {SCHEMA}: upgrade mindspore-harness"
            )
        return BaselineFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what = f"{where}: {first['msg']}"
    except (ValueError, KeyError) as error:
        what = "it is empty" if not text.strip() else f"{type(error).__name__}: {error}"
    raise BaselineError(f"baseline {path.name} is corrupt ({what}); restore it from version control or approve anew")


def write(path: Path, content: BaselineFile) -> None:
    """Replaces a baseline file, or leaves the old one.

    Raises:
        ResultsError: it can't be written.
    """
    plain = content.model_dump(mode="json", exclude_none=True)
    for record in plain["runs"].values():
        if not record["steps"]:
            del record["steps"]
    write_atomically(path, json.dumps(plain, indent=1, sort_keys=True) + "\n")


def candidate(
    run: Run, metrics: dict[str, float], curves: dict[str, list[float]], times: Mapping[str, float | None]
) -> Record:
    """What approving a run would store.

    Args:
        run: gives scenario, environment and machine.
        metrics: ``numeric`` and ``ratio`` scalars that were checked.
        curves: curves that were checked.
        times: ``machine`` scalars that were checked; None for one that was not properly measured.
    """
    samples = {name: [] if value is None else [value] for name, value in times.items()}
    return Record(
        scenario_hash=run.description.hash,
        scenario=run.scenario,
        environment=run.environment,
        metrics=metrics,
        curves=curves,
        steps={name: run.steps[name] for name in curves if name in run.steps},
        machine=run.machine,
        machines={run.machine: Times(metrics=samples, environment=run.environment)} if samples else {},
    )
