"""Has trained weights do tasks, in a process of its own that writes each result as it is done."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from harness import weights
from harness.decoding import Decoding
from harness.errors import ResultsError, TaskError
from harness.files import tail, write_atomically
from harness.launch import rank_environment
from harness.launch.code import Code
from harness.launch.rank import SESSION, end_with_parent
from harness.locks import lock_folder
from harness.tasks import log
from harness.tasks.log import Setting
from harness.tasks.task import Task, read

REQUEST = "request.json"


class Asked(BaseModel):
    """One task, and the samples of it that have no result yet."""

    model_config = ConfigDict(extra="forbid")

    file: str
    setting: Setting
    missing: list[str]

    def load(self, root: Path) -> Task:
        """The task, the same that was asked for.

        Raises:
            TaskError: its file changed meanwhile.
        """
        task = read(root / self.file)
        if task.digest != self.setting.file:
            raise TaskError(f"task {Path(self.file).name} changed while it was asked; ask again")
        return task


class Request(BaseModel):
    """One examination, as its process reads it."""

    model_config = ConfigDict(extra="forbid")

    scenario: dict[str, Any]
    root: str
    hardware: str
    weights: str
    log: str
    shots: int
    temperature: float
    top_k: int
    top_p: float
    seed: int
    tasks: list[Asked]


@dataclass(frozen=True)
class Examination:
    """What is asked of a model, and how."""

    tasks: tuple[Path, ...]
    shots: int = 0
    decoding: Decoding = field(default_factory=lambda: Decoding(temperature=0.0))
    seed: int = 0
    hardware: str = "cpu"


def examine(folder: Path, asked: Examination, code: Code, results: Path | None = None) -> tuple[int, int]:
    """Asks what has not been asked before.

    Args:
        folder: of the weights.
        asked: the tasks and how.
        code: whose code.
        results: the log; one beside the weights by default.

    Returns:
        How many samples were asked, and how many had their results already.

    Raises:
        DataError: the weights are not whole, or of another model.
        TaskError: a task can't be read, or does not fit the model's context.
        ResultsError: the log can't be written, or another examination writes it.
    """
    manifest = weights.read(folder)
    if asked.shots < 0:
        raise TaskError(f"shots={asked.shots} must be at least 0")
    place = (results or folder / log.LOG).resolve()
    with _only_writer(place):
        known = log.read(place).results
        tasks, done = [], 0
        for path in asked.tasks:
            task = read(path)
            setting = Setting(
                checkpoint=manifest.digest,
                task=task.header.task,
                version=task.header.version,
                file=task.digest,
                shots=asked.shots,
                temperature=asked.decoding.temperature,
                top_k=asked.decoding.top_k,
                top_p=asked.decoding.top_p,
                seed=asked.seed,
            )
            if asked.shots >= len(task.samples):
                raise TaskError(
                    f"shots={asked.shots}: task {task.header.task!r} has {len(task.samples)} samples; use fewer shots"
                )
            missing = log.missing(known, setting, [sample.id for sample in task.samples])
            done += len(task.samples) - len(missing)
            if missing:
                tasks.append(Asked(file=str(path.resolve()), setting=setting, missing=missing))
        if tasks:
            _run(
                Request(
                    scenario=manifest.scenario,
                    root=str(code.root.resolve()),
                    hardware=asked.hardware,
                    weights=str(folder.resolve()),
                    log=str(place),
                    shots=asked.shots,
                    temperature=asked.decoding.temperature,
                    top_k=asked.decoding.top_k,
                    top_p=asked.decoding.top_p,
                    seed=asked.seed,
                    tasks=tasks,
                ),
                code,
            )
        return sum(len(each.missing) for each in tasks), done


@contextmanager
def _only_writer(place: Path) -> Iterator[None]:
    lock = FileLock(f"{place}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ResultsError(f"{place.name} is being written by another examination; wait for it") from None
    except OSError as error:
        raise ResultsError(f"{place.name} can't be written: {error.strerror}; name a log with --log") from None
    try:
        yield
    finally:
        lock.release()


def complete(folder: Path, seen: set[Path]) -> list[Path]:
    """Folders of weights below a folder whose manifest is there, oldest first.

    Args:
        folder: is looked through.
        seen: are left out.

    Raises:
        ResultsError: there is no such folder.
    """
    if not folder.is_dir():
        raise ResultsError(f"{folder} is no folder; name one below which runs leave their weights")
    found = []
    for path in folder.rglob(f"{weights.FOLDER}/{weights.MANIFEST}"):
        # A run's folder may go while it is looked at.
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path.parent))
    return [place for _, place in sorted(found) if place not in seen]


def _run(request: Request, code: Code) -> None:
    work = Path(tempfile.mkdtemp(prefix="harness-examination-"))
    try:
        write_atomically(work / REQUEST, request.model_dump_json())
        output = work / "output"
        environment = {**rank_environment(1, code), SESSION: str(os.getpid())}
        with FileLock(lock_folder() / f"device-{request.hardware}.lock"), output.open("wb") as file:
            process = subprocess.Popen(
                [str(code.python), "-m", "harness.trainer.examine", str(work)],
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
            try:
                status = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        if status:
            lines = [line for line in tail(output, 50) if line.strip()]
            said = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
            raise TaskError(said[-1] if said else f"the examination ended with {status}: {lines[-1] if lines else ''}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
