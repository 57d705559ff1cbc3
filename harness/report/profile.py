"""Profiles as tables for the terminal."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from harness.metrics.registry import METRICS
from harness.profiling import Operator, StepTrace
from harness.profiling.operators import communicates


def operator_table(operators: Sequence[Operator], most: int, title: str) -> Table:
    """The first operators as they are given, with their share of all time."""
    whole = sum(operator.seconds for operator in operators) or 1.0
    table = Table(title=title, box=None, title_justify="left")
    table.add_column("operator")
    for name in ("calls a step", "ms a step", "share"):
        table.add_column(name, justify="right")
    for operator in operators[:most]:
        table.add_row(
            escape(operator.kind),
            f"{operator.calls:g}",
            f"{1e3 * operator.seconds:.3f}",
            f"{operator.seconds / whole:.1%}",
        )
    return table


def profile_tables(operators: Sequence[Operator], most: int) -> list[Table]:
    """Top operators by time, by calls, and those that communicate."""
    by_calls = sorted(operators, key=lambda operator: -operator.calls)
    talking = [operator for operator in operators if communicates(operator)]
    tables = [operator_table(operators, most, "by time"), operator_table(by_calls, most, "by calls")]
    return [*tables, operator_table(talking, most, "communication")] if talking else tables


def share_line(shares: dict[str, float]) -> str:
    """Metrics that a profile makes, in a line."""
    return ", ".join(f"{name} {value:.3g} {METRICS[name].unit}".rstrip() for name, value in shares.items())


def step_table(steps: Sequence[StepTrace]) -> Table:
    """Where each step's time went."""
    table = Table(title="steps", box=None, title_justify="left")
    for name in ("step", "rank", "computing", "exposed communication", "overlapped", "free", "bubble"):
        table.add_column(name, justify="right")
    for step in steps:
        parts = (step.computing, step.exposed, step.overlapped, step.free, step.bubble)
        table.add_row(escape(step.step), escape(step.rank), *(f"{1e3 * part:.2f} ms" for part in parts))
    return table
