"""results.json: everything that one session ran and decided; the only source of every report."""

import json
import os
import uuid
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import ResultsError
from harness.files import write_atomically
from harness.gate.verdict import Verdict
from harness.run import Run

SCHEMA = 3
"""2 added what a curve was compared with, 3 the phases of a run and whether it trained beside others."""
FILE = "results.json"
LATEST = "latest"

_STRICT = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class Attempt(BaseModel):
    """One execution of a test."""

    model_config = _STRICT

    outcome: str
    """``passed``, ``failed``, ``skipped`` or ``error``."""

    seconds: float = 0.0
    message: str = ""
    """Why it failed or was skipped."""

    verdicts: list[Verdict] = Field(default_factory=list)
    runs: list[str] = Field(default_factory=list)
    """Keys into ``Results.runs``."""


class TestResult(BaseModel):
    """One test; executed again, it is still one test, and its first verdicts stay."""

    __test__ = False
    model_config = _STRICT

    nodeid: str
    hardware: str
    baseline: str
    """File of its baseline, relative to the baselines folder."""

    attempts: list[Attempt] = Field(default_factory=list)
    flaky: bool = False
    """Whether it failed and later passed."""

    @property
    def failed(self) -> bool:
        """Whether its last attempt did not go well."""
        return self.last.outcome in ("failed", "error")

    @property
    def last(self) -> Attempt:
        """The attempt that counts."""
        return self.attempts[-1]

    def add(self, attempt: Attempt) -> None:
        """Appends an attempt."""
        self.attempts.append(attempt)
        outcomes = [a.outcome for a in self.attempts]
        self.flaky = outcomes[-1] == "passed" and any(o in ("failed", "error") for o in outcomes)


class Results(BaseModel):
    """One session."""

    model_config = _STRICT

    schema_version: int = SCHEMA
    started: str
    """UTC, ISO 8601."""

    harness: str
    commit: str = ""
    """Commit that was checked out; empty outside a repository."""

    dirty: bool = False
    """Whether anything but baselines differed from that commit."""

    fault: str | None = None
    tests: list[TestResult] = Field(default_factory=list)
    runs: dict[str, Run] = Field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether no test failed."""
        return not any(test.failed for test in self.tests)

    @property
    def verdicts(self) -> list[tuple[str, Verdict]]:
        """(test, verdict) of each test's last attempt, what fails first."""
        pairs = [(test.nodeid, verdict) for test in self.tests for verdict in test.last.verdicts]
        return sorted(
            pairs, key=lambda pair: (*pair[1].rank[:2], -abs(pair[1].change or 0.0), pair[0], *pair[1].rank[2:])
        )

    def write(self, folder: Path) -> None:
        """Replaces the session's results and points ``latest`` at them.

        Raises:
            ResultsError: the disk is full or the folder can't be written; the old file stays.
        """
        self.tests.sort(key=lambda test: test.nodeid)
        try:
            write_atomically(folder / FILE, self.model_dump_json(indent=1))
            _point(folder)
        except OSError as error:
            raise ResultsError(f"{LATEST} can't be pointed at {folder.name}: {error.strerror}; use --results") from None


def _point(folder: Path) -> None:
    link = folder.parent.parent / LATEST
    part = link.with_name(f".{LATEST}.{os.getpid()}")
    with suppress(FileNotFoundError):
        part.unlink()
    part.symlink_to(folder.relative_to(link.parent))
    part.replace(link)


def new_folder(results: Path) -> Path:
    """A name for a new session's folder, below the folder of results; the folder is not made."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return results.absolute() / "runs" / f"{stamp}-{uuid.uuid4().hex[:6]}"


def read(folder: Path) -> Results:
    """A session's results.

    Raises:
        ResultsError: there are none, or they can't be read.
    """
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
        content = json.loads(text)
        version = content.get("schema_version") if isinstance(content, dict) else None
        if isinstance(version, int) and version > SCHEMA:
            raise ResultsError(
                f"results of {folder.name} have schema {version}, newer than {SCHEMA}: upgrade mindspore-harness"
            )
        return Results.model_validate_json(text)
    except FileNotFoundError:
        raise ResultsError(f"no results in {folder.name}: run a suite first (pytest -m cpu suites)") from None
    except (OSError, ValidationError, ValueError) as error:
        raise ResultsError(
            f"results of {folder.name} can't be read: {str(error).splitlines()[0]}; run the suite again"
        ) from None
