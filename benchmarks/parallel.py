"""What each layout makes of the same global batch, beside one process: tokens a second, and the start-up.

    python benchmarks/parallel.py [rounds]

Every layout is trained once a round, in turn, so that a slow minute of the machine falls on all of them. Layouts with
more ranks than cores are shown, but their times say how long ranks wait for a core.
"""

import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness import Layout, Scenario
from harness.launch.code import Code
from harness.launch.request import PROGRESS
from harness.measure import measure

BASE = Scenario(model="tiny", steps=12, batch=16, eval_sequences=0)
PIPELINE = {"layout": Layout(pp=2), "micro_batches": 8}
LAYOUTS = {
    "one process": BASE,
    "dp2": BASE.replace(layout=Layout(dp=2)),
    "dp2, sharded optimizer": BASE.replace(layout=Layout(dp=2, optimizer_sharding=True)),
    "dp2, reduction not fused": BASE.replace(layout=Layout(dp=2), fused_reduction=False),
    "tp2": BASE.replace(layout=Layout(tp=2)),
    "pp2, GPipe": BASE.replace(pipeline_schedule="gpipe", **PIPELINE),
    "pp2, 1F1B": BASE.replace(**PIPELINE),
    "pp2, interleaved": BASE.replace(pipeline_schedule="interleaved", chunks=2, **PIPELINE),
    "pp2, zero bubble": BASE.replace(pipeline_schedule="zero_bubble", **PIPELINE),
    "dp2 × tp2": BASE.replace(layout=Layout(dp=2, tp=2)),
    "dp2 × pp2": BASE.replace(layout=Layout(dp=2, pp=2), micro_batches=4),
    "tp2 × pp2": BASE.replace(layout=Layout(tp=2, pp=2), micro_batches=8),
}


def train(scenario: Scenario, folder: Path) -> tuple[float, float, float | None]:
    """Tokens a second, seconds from the start to the end of the first step, and the bubble where there is one."""
    first: list[float] = []
    start = time.time()

    def watch(step: int, loss: float) -> None:
        if not first:
            first.append((folder / PROGRESS).stat().st_mtime - start)

    run = measure(scenario, "cpu", Code(Path.cwd()), folder, show_progress=lambda _: nullcontext(watch))
    tokens = scenario.tokens_per_step / run.typical_step_time
    return tokens, first[0] if first else float("nan"), run.metrics.get("bubble_ratio")


def main(rounds: int) -> None:
    """Measures and prints."""
    figures: dict[str, list[tuple[float, float, float | None]]] = {name: [] for name in LAYOUTS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name, scenario in LAYOUTS.items():
                figures[name].append(train(scenario, Path(folder) / "run"))
    cores = len(os.sched_getaffinity(0))
    alone = statistics.median(tokens for tokens, _, _ in figures["one process"])
    table = Table(
        title=f"{BASE.model}, {BASE.tokens_per_step} tokens a step, {cores} cores, {rounds} round(s)", box=None
    )
    for column in ("layout", "tokens/s", "of one process", "first step after", "bubble"):
        table.add_column(column, justify="left" if column == "layout" else "right")
    for name, found in figures.items():
        tokens = statistics.median(each[0] for each in found)
        started = statistics.median(each[1] for each in found)
        bubbles = [each[2] for each in found if each[2] is not None]
        note = " (shares cores)" if LAYOUTS[name].layout.world_size > cores else ""
        bubble = f"{statistics.median(bubbles):.1%}" if bubbles else ""
        table.add_row(name + note, f"{tokens:,.0f}", f"{tokens / alone:.2f}", f"{started:.1f} s", bubble)
    Console().print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
