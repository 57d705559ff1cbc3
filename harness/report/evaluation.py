"""Scores of tasks as a table: a row a task, a column a checkpoint."""

import math
from collections import Counter
from collections.abc import Mapping

from rich.markup import escape
from rich.table import Table

from harness.tasks.log import Setting
from harness.tasks.summary import Score

ERROR = "_stderr"


def score_table(scores: Mapping[Setting, Score]) -> Table:
    """Compares checkpoints; those after the first say with ↑ or ↓ that they differ from it by more than two errors.

    Of a score without an error, or of other samples than the first's, nothing is said.

    Args:
        scores: of every setting; the first one's checkpoint is what the others are compared with.
    """
    steps = {setting.checkpoint: setting.step for setting in scores}
    checkpoints = list(steps)
    rows: dict[Setting, dict[str, Score]] = {}
    for setting, score in scores.items():
        rows.setdefault(setting.model_copy(update={"checkpoint": "", "step": 0}), {})[setting.checkpoint] = score
    table = Table(box=None)
    for column in ("task", "metric", "samples"):
        table.add_column(column)
    for checkpoint in checkpoints:
        table.add_column(f"step {steps[checkpoint]}\n{escape(checkpoint[:8])}", justify="right")
    titles = Counter(_title(setting) for setting in rows)
    for setting, own in rows.items():
        most = max(own.values(), key=lambda score: score.samples)
        first = own.get(checkpoints[0])
        cells = [_cell(own.get(checkpoint), first, most.samples) for checkpoint in checkpoints]
        title = _title(setting)
        title += f", file {setting.file[:8]}" if titles[title] > 1 else ""
        table.add_row(escape(title), most.name, str(most.samples), *cells)
    return table


def outside_table(found: Mapping[str, Mapping[str, float]]) -> Table:
    """What another tool measured: a row a task and metric, with its standard error where it gives one."""
    table = Table("task", "metric", "value", box=None)
    for task, metrics in found.items():
        for name, value in metrics.items():
            if name.endswith(ERROR):
                continue
            error = metrics.get(name + ERROR)
            text = f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"
            table.add_row(escape(task), escape(name), text)
    return table


def _title(setting: Setting) -> str:
    how = "greedy" if setting.temperature == 0 else f"temperature {setting.temperature:g}, seed {setting.seed}"
    limits = [f"top_k {setting.top_k}"] * bool(setting.top_k) + [f"top_p {setting.top_p:g}"] * (setting.top_p < 1)
    shots = f"{setting.shots} shots" if setting.shots else "zero-shot"
    return f"{setting.task} v{setting.version}, {shots}, {', '.join([how, *limits])}"


def _cell(score: Score | None, first: Score | None, samples: int) -> str:
    if score is None:
        return "–"
    text = f"{score.value:.3f}" if score.error is None else f"{score.value:.3f} ± {score.error:.3f}"
    if score.truncated:
        text += f", {score.truncated:.0%} truncated"
    if score.samples != samples:
        text += f" ({score.samples} samples)"
    if first is None or first.samples != score.samples or score.error is None or first.error is None:
        return text
    change = score.value - first.value
    both = math.hypot(score.error, first.error)
    return f"{text} {'↑' if change > 0 else '↓'}" if abs(change) > 2 * both else text
