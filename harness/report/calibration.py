"""Shows how metrics scattered over runs of unchanged code."""

import math
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from harness.gate.calibrate import Calibration
from harness.report.terminal import number


def calibration_table(calibrations: Sequence[Calibration]) -> Table:
    """Center, scatter, tolerance in force and proposal of each metric.

    The scatter of a time is its between-run standard deviation; that of a number its largest deviation at any step.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("metric", "center", "scatter", "tolerance", "proposed"):
        table.add_column(heading, justify="left" if heading in ("metric", "proposed") else "right", no_wrap=True)
    for found in calibrations:
        policy = found.policy
        absolute = f" or {number(policy.absolute, found.metric.unit)}" if policy.absolute else ""
        table.add_row(
            escape(found.metric.name),
            number(found.center, found.metric.unit),
            _scatter(found.scatter),
            f"{100 * policy.relative:g} %{absolute}",
            escape(", ".join(f"{name} = {str(value).lower()}" for name, value in found.proposal.items())) or "–",
        )
    return table


def _scatter(share: float) -> str:
    if math.isinf(share):
        return "undefined"
    return f"{100 * share:.2g} %" if share else "none"
