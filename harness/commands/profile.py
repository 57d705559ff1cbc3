"""Reads a profiler's folder, or the profile that a run kept."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.errors import ProfileError
from harness.profiling import Operator, StepTrace, read_operators, read_steps, shares
from harness.run import Run


@dataclass(frozen=True)
class Profile:
    """What a profile tells."""

    operators: list[Operator]
    """Of a step, slowest kind first."""

    steps: list[StepTrace]
    """Empty where the hardware does not report them."""

    shares: dict[str, float]
    """Metrics that they make."""


def read_profile(folder: Path, steps: int) -> Profile:
    """Reads what a folder holds.

    Args:
        folder: what ``mindspore.profiler`` left, or a run's of the harness.
        steps: that were profiled; a run knows it itself.

    Raises:
        ProfileError: there is no profile in it, or it is damaged.
        Undefined: its steps took no time.
    """
    if not folder.is_dir():
        raise ProfileError(f"{folder} is no folder; name one that mindspore.profiler left, or a run's")
    if (folder / "run.json").exists():
        return Profile(_of_run(folder / "run.json"), [], {})
    traces = read_steps(folder)
    operators = read_operators(folder, len({each.step for each in traces}) or steps)
    return Profile(operators, traces, shares(traces) if traces else {})


def _of_run(path: Path) -> list[Operator]:
    try:
        run = Run.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise ProfileError(f"{path} is no run: {str(error).splitlines()[0]}") from None
    if not run.operators:
        raise ProfileError(f"{path} was not profiled; set profiled_steps in its scenario")
    return run.operators
