"""Has trained weights do tasks, in a process of its own that writes each result as it is done."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from harness.checkpoints import manifest as checkpoint
from harness.checkpoints.store import FOLDER, Store
from harness.decoding import Decoding
from harness.errors import ResultsError, TaskError
from harness.launch import child, rank_environment
from harness.launch.code import Code
from harness.tasks import log
from harness.tasks.log import Setting
from harness.tasks.task import Task, read


class Asked(BaseModel):
    """One task, and the samples of it that have no result yet."""

    model_config = ConfigDict(extra="forbid")

    file: str
    setting: Setting
    missing: list[str]

    def load(self) -> Task:
        """The task, the same that was asked for.

        Raises:
            TaskError: its file changed meanwhile.
        """
        task = read(Path(self.file))
        if task.digest != self.setting.file:
            raise TaskError(f"task {Path(self.file).name} changed while it was asked; ask again")
        return task


class Request(BaseModel):
    """One examination, as its process reads it."""

    model_config = ConfigDict(extra="forbid")

    root: str
    hardware: str
    checkpoint: str
    log: str
    tasks: list[Asked]


@dataclass(frozen=True)
class Examination:
    """What is asked of a model, and how."""

    tasks: tuple[Path, ...]
    shots: int = 0
    decoding: Decoding = field(default_factory=lambda: Decoding(temperature=0.0))
    seed: int = 0
    hardware: str = "cpu"
    waits: bool = True
    """Whether it waits until nobody else of this user trains on the hardware; a watcher works beside the training."""


def examine(folder: Path, asked: Examination, code: Code, results: Path | None = None) -> tuple[int, int]:
    """Asks what has not been asked before.

    Args:
        folder: of a checkpoint.
        asked: the tasks and how.
        code: whose code.
        results: the log; by default one beside all checkpoints of the run.

    Returns:
        How many samples were asked, and how many had their results already.

    Raises:
        CheckpointError: it is not whole, or of another model.
        TaskError: a task can't be read, or does not fit the model's context.
        ResultsError: the log can't be written, or another examination writes it.
    """
    manifest = checkpoint.read(folder)
    if asked.shots < 0:
        raise TaskError(f"shots={asked.shots} must be at least 0")
    place = (results or log_beside(folder)).resolve()
    with _only_writer(place):
        known = log.read(place).results
        tasks, done = [], 0
        for path in asked.tasks:
            task = read(path)
            setting = Setting(
                checkpoint=manifest.digest,
                step=manifest.step,
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
            request = Request(
                root=str(code.root.resolve()),
                hardware=asked.hardware,
                checkpoint=str(folder.resolve()),
                log=str(place),
                tasks=tasks,
            )
            environment, device = rank_environment(1, code), asked.hardware if asked.waits else None
            with child.asked("harness.trainer.examine", request, code, environment, device):
                pass
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
    """Complete checkpoints below a folder, run by run, first steps first.

    Args:
        folder: is looked through.
        seen: are left out.

    Raises:
        ResultsError: there is no such folder.
    """
    if not folder.is_dir():
        raise ResultsError(f"{folder} is no folder; name one below which runs leave their checkpoints")
    places = []
    # Folders come and go while it is looked at, which os.walk minds less than rglob.
    for path, folders, _ in os.walk(folder):
        if FOLDER in folders:
            places.append(Path(path) / FOLDER)
            folders.remove(FOLDER)
    stores = [Store(place) for place in (sorted(places) if folder.name != FOLDER else [folder])]
    found = [store.path(step) for store in stores for step in store.steps()]
    return [place for place in found if place not in seen]


def log_beside(folder: Path) -> Path:
    """The log of a checkpoint's results, which all checkpoints of the run share and which outlives them."""
    return folder.resolve().parent / log.LOG
