"""A progress bar for long runs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.scenario import Scenario


@contextmanager
def bar(scenario: Scenario, left: str, uncaptured: AbstractContextManager[Any]) -> Iterator[Any]:
    """Shows the steps of a run while it lasts, and leaves no trace.

    Args:
        scenario: gives the number of steps.
        left: what of the session is, in words.
        uncaptured: lets output through to the terminal.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with uncaptured, Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        ahead = f"{left} · " if left else ""
        task = progress.add_task(f"{ahead}{scenario.model} {scenario.hash[:6]}", total=scenario.steps)
        yield lambda step, loss: progress.update(
            task, completed=step, description=f"{ahead}{scenario.model} loss {loss:.3f}"
        )
