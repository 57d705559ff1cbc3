"""Curves of two trainings side by side."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from harness.comparison import Compared
from harness.gate.verdict import Status
from harness.report.terminal import number


def curve_table(found: Sequence[Compared]) -> Table:
    """A row a curve: verdict, steps that both have or one alone, the first that deviates, the largest difference."""
    headings = ("curve", "verdict", "steps", "only first", "only second", "deviates at", "first", "second", "largest")
    table = Table(box=None)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("curve", "verdict") else "right", no_wrap=True)
    for each in found:
        verdict = each.verdict
        deviates = verdict.status is not Status.PASS
        color = "green" if not deviates else "red"
        table.add_row(
            escape(each.name),
            f"[{color}]{verdict.status.value}[/]",
            *(str(count) for count in (each.steps, each.one_alone, each.other_alone)),
            str(verdict.step) if deviates and verdict.step else "",
            number(verdict.baseline) if deviates else "",
            number(verdict.value) if deviates else "",
            f"{each.largest:.3g}",
        )
    return table
