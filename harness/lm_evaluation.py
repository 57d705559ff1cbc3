"""Has lm-evaluation-harness ask a checkpoint, in a process of its own."""

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from harness.checkpoints import manifest
from harness.errors import TaskError
from harness.launch import child, rank_environment
from harness.launch.code import Code
from harness.tasks.task import read

ANSWER = "answer.json"


class Request(BaseModel):
    """What its process is asked to do."""

    model_config = ConfigDict(extra="forbid")

    checkpoint: str
    root: str
    hardware: str
    files: list[str]
    """Tasks of ours."""

    names: list[str]
    """Tasks of its own."""

    include: str | None
    shots: int
    limit: int | None


@dataclass(frozen=True)
class Asked:
    """Tasks, and how they are asked."""

    tasks: Sequence[str]
    """Files of ours, which end in ``.jsonl``, or names that lm-evaluation-harness knows."""

    shots: int = 0
    include: Path | None = None
    limit: int | None = None
    hardware: str = "cpu"


def evaluate(folder: Path, asked: Asked, code: Code) -> dict[str, dict[str, float]]:
    """Asks.

    Args:
        folder: of a checkpoint.
        asked: the tasks.
        code: whose code.

    Returns:
        Metrics of each task, and their standard errors under ``…_stderr``.

    Raises:
        CheckpointError: the checkpoint is not whole.
        TaskError: lm-evaluation-harness is not installed, a task can't be read, or it refuses it.
    """
    if importlib.util.find_spec("lm_eval") is None:
        raise TaskError("lm-evaluation-harness is not installed: pip install 'mindspore-harness[lm-eval]'")
    manifest.read(folder)
    files = [Path(task).resolve() for task in asked.tasks if task.endswith(".jsonl")]
    for path in files:
        task = read(path)
        if task.header.kind == "generation":
            raise TaskError(f"task {path.name}: lm-evaluation-harness has no measure of variety; ask it with `run`")
        if asked.shots >= len(task.samples):
            raise TaskError(f"shots={asked.shots}: task {path.name} has {len(task.samples)} samples; use fewer shots")
    request = Request(
        checkpoint=str(folder.resolve()),
        root=str(code.root.resolve()),
        hardware=asked.hardware,
        files=[str(path) for path in files],
        names=[task for task in asked.tasks if not task.endswith(".jsonl")],
        include=str(asked.include.resolve()) if asked.include else None,
        shots=asked.shots,
        limit=asked.limit,
    )
    environment = rank_environment(1, code)
    with child.asked("harness.trainer.lm_evaluate", request, code, environment, asked.hardware) as work:
        found: dict[str, dict[str, float]] = json.loads((work / ANSWER).read_text(encoding="utf-8"))
        return found
