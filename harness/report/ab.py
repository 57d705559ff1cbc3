"""A paired experiment, as tables for the terminal."""

import statistics
from collections.abc import Sequence

from rich.table import Table

from harness.gate.confirm import CONFIDENCE, ratio_interval
from harness.metrics.registry import METRICS
from harness.report.terminal import number
from harness.run import Run

Pair = tuple[Run, Run]
"""As it was, and changed."""

COMPARED = ("step_time", "throughput", "peak_memory")
SHOWN_STEPS = 6


def comparison_table(pairs: Sequence[Pair]) -> Table:
    """What both sides took, and their ratio with its interval."""
    table = Table(box=None)
    for heading in ("", "as it was", "changed", "ratio", f"{100 * CONFIDENCE:g} % interval", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for name in COMPARED:
        values = [(a.metrics[name], b.metrics[name]) for a, b in pairs if name in a.metrics and name in b.metrics]
        if values:
            _add(table, name, METRICS[name].unit, values, METRICS[name].direction == "higher")
    _add(table, "loss at the end", "nat", [(a.curve("loss")[-1], b.curve("loss")[-1]) for a, b in pairs], False)
    return table


def _add(table: Table, name: str, unit: str, values: list[tuple[float, float]], more_is_better: bool) -> None:
    plain, other = [a for a, _ in values], [b for _, b in values]
    if min(*plain, *other) <= 0:
        return
    interval = ratio_interval(plain, other)
    if interval.low <= 1 <= interval.high:
        word = "equal" if interval.low == interval.high else "no difference seen"
    else:
        word = "better" if (interval.ratio > 1) == more_is_better else "worse"
    table.add_row(
        name,
        number(statistics.median(plain), unit),
        number(statistics.median(other), unit),
        f"{interval.ratio:.4f}",
        f"{interval.low:.4f} – {interval.high:.4f}",
        word,
    )


def loss_table(pair: Pair) -> Table:
    """The loss curves of one pair side by side, at some steps."""
    plain, other = (run.curve("loss") for run in pair)
    table = Table(box=None)
    for heading in ("step", "loss as it was", "changed", "difference"):
        table.add_column(heading, justify="right")
    last = min(len(plain), len(other)) - 1
    for index in sorted({round(i * last / (SHOWN_STEPS - 1)) for i in range(SHOWN_STEPS)}):
        difference = other[index] - plain[index]
        table.add_row(str(index + 1), f"{plain[index]:.6f}", f"{other[index]:.6f}", f"{difference:+.2e}")
    return table
