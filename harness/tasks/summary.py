"""What results say of a checkpoint, task by task. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from harness.errors import Undefined
from harness.metrics.text import distinct_n
from harness.tasks.log import Result, Setting


@dataclass(frozen=True)
class Score:
    """One number of a task."""

    name: str
    """``accuracy``, or ``distinct_2`` of what was written."""

    value: float
    error: float | None
    """Standard error; None where there is none to be had."""

    samples: int
    truncated: float
    """Share of outputs without their end."""


def scores(results: Iterable[Result]) -> dict[Setting, Score]:
    """The score of every setting, in the order in which they first come; of a sample that was done twice, the last."""
    by_setting: dict[Setting, dict[str, Result]] = {}
    for result in results:
        by_setting.setdefault(result.setting, {})[result.sample] = result
    return {setting: _score(list(own.values())) for setting, own in by_setting.items()}


def _score(results: list[Result]) -> Score:
    count = len(results)
    truncated = sum(result.truncated for result in results) / count
    right = [result.correct for result in results if result.correct is not None]
    if right:
        share = sum(right) / len(right)
        return Score("accuracy", share, standard_error(share, len(right)), count, truncated)
    try:
        value = distinct_n([list((result.output or "").encode()) for result in results], 2)
    except Undefined:
        value = math.nan
    return Score("distinct_2", value, None, count, truncated)


def standard_error(share: float, count: int) -> float | None:
    """Of a share of independent samples, √(p (1 − p) / (n − 1)); None of a single one."""
    return math.sqrt(share * (1 - share) / (count - 1)) if count > 1 else None
