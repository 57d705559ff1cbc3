"""Reads a scenario's rows as training would, without training: how fast a data pipeline is by itself."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from harness import corpus
from harness.errors import DataError, LaunchError
from harness.launch import check_supported, rank_environment
from harness.launch.code import Code
from harness.launch.rank import end_with_parent
from harness.locks import device_lock
from harness.scenario import Scenario

Dataset = Literal["planned", "TextFileDataset"]
"""Who reads: what training reads by, or MindSpore's reader of lines, in the file's order, with each line made a row in
Python; the latter for ``records:FILE`` alone."""

DEADLINE = 120.0
"""Seconds that one reading may take."""


class Request(BaseModel):
    """One reading, as its process is asked for it."""

    model_config = ConfigDict(extra="forbid")

    scenario: dict[str, Any]
    root: str
    batches: int
    dataset: Dataset


class Reading(BaseModel):
    """What a reading took."""

    model_config = ConfigDict(extra="forbid")

    rows: int = 0
    """That came after the first batch."""

    seconds: float = 0.0
    """From the first batch to the last."""

    error: str = ""

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


class Reader:
    """The ``reader`` fixture: a process that reads what it is asked to, one by one, each alone on the device."""

    def __init__(self, hardware: str, code: Code, log: Path) -> None:
        """Starts nothing yet.

        Args:
            hardware: whose device nobody else may use meanwhile.
            code: whose code, and what text files are relative to.
            log: takes what the process prints.
        """
        self.hardware, self.code, self.log = hardware, code, log
        self._process: subprocess.Popen[bytes] | None = None
        self._answers = -1

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def read(self, scenario: Scenario, batches: int, dataset: Dataset = "planned") -> Reading:
        """Reads batches.

        Args:
            scenario: gives data, its order, batch, sequence, workers and prefetch.
            batches: at least two; the first only starts the clock.
            dataset: who reads.

        Raises:
            ScenarioError, DataError: it can't be read.
            LaunchError: the process ended, or did not answer in time.
        """
        if batches < 2:
            raise DataError(f"batches={batches}: the first starts the clock; read at least two")
        if dataset == "TextFileDataset" and not scenario.data.startswith("records:"):
            raise DataError(f"data={scenario.data!r} has no lines for TextFileDataset; use records:FILE")
        check_supported(scenario, self.hardware)
        corpus.check(scenario, self.code.root)
        request = Request(
            scenario=scenario.to_dict(), root=str(self.code.root.resolve()), batches=batches, dataset=dataset
        )
        process = self._started()
        assert process.stdin is not None
        with device_lock(self.hardware):
            try:
                process.stdin.write(request.model_dump_json().encode() + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                raise LaunchError(f"the reading process ended; its log: {self.log.name}") from None
            answer = Reading.model_validate_json(self._line())
        if answer.error:
            raise DataError(answer.error)
        return answer

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            os.close(self._answers)
            self._process = None

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            self._answers, answers = os.pipe()
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(
                    [str(self.code.python), "-m", "harness.trainer.reading", str(answers)],
                    cwd=self.log.parent,
                    env=rank_environment(1, self.code),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=[answers],
                    start_new_session=True,
                    preexec_fn=end_with_parent,
                )
            os.close(answers)
        return self._process

    def _line(self) -> bytes:
        """The answer; what comes must end with its line."""
        found, deadline = b"", time.monotonic() + DEADLINE
        while not found.endswith(b"\n"):
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self._answers, 65_536) if ready else b""
            if not part:
                what = "ended" if ready else f"gave no answer in {DEADLINE:g} s"
                # Its answer may still come, to a question that was not put.
                self.close()
                raise LaunchError(f"the reading process {what}; its log: {self.log.name}")
            found += part
        return found
