"""What judging and remembering cost.

    python benchmarks/gate_speed.py

Bounds: 10 000 results of 8 metrics compared in 5 s, a curve of 1 000 000 steps in 0.5 s, and a trend out of 1 000 000
stored values in 0.1 s.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from harness.environment import Environment
from harness.gate import Policy, compare
from harness.gate.baseline import candidate
from harness.gate.judge import judge
from harness.history.database import History, Point, Series
from harness.history.trend import trend
from harness.metrics import METRICS
from harness.run import Run
from harness.scenario import Scenario

VALUES, RESULTS, STEPS = 1_000_000, 10_000, 1_000_000
SCALARS = (
    "validation_perplexity",
    "distinct_1",
    "distinct_2",
    "distinct_3",
    "repetition",
    "peak_memory",
    "throughput",
    "step_time",
)


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """The fastest of some repetitions."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def compare_results() -> float:
    """Judges the same run against its record again and again, eight metrics each time."""
    run = Run(
        scenario=Scenario().to_dict(),
        hardware="cpu",
        environment=Environment(hardware="cpu", architecture="x86_64", mindspore="2.10.0", data="text"),
        machine="m",
        metrics=dict.fromkeys(SCALARS, 1.0),
        curves={},
        step_seconds=[1.0] * 40,
    )
    times = {name: 1.0 for name in SCALARS if METRICS[name].scope == "machine"}
    record = candidate(run, {name: 1.0 for name in SCALARS if name not in times}, {}, times)

    def work() -> None:
        for _ in range(RESULTS):
            assert len(judge(record, run, record, None)) == len(SCALARS)

    return seconds(work)


def compare_curve() -> float:
    """Compares one long curve, as a list of floats, which is how a run holds it."""
    curve = np.random.default_rng(0).normal(3, 1, STEPS).tolist()
    return seconds(lambda: compare(METRICS["loss"], curve, list(curve), Policy(1e-3)), times=3)


def query_trend(folder: Path) -> float:
    """Asks for one series out of a thousand, and looks for its changes."""
    history = History(str(folder / "history.sqlite"))
    names = [Series(f"suites/test_x.py::test_{i}[cpu]", "run", "step_time", "m") for i in range(1000)]
    random = np.random.default_rng(0)
    batch = 10
    for session in range(VALUES // len(names) // batch):
        values = np.exp(random.normal(0, 0.03, (batch, len(names)))).tolist()
        pairs = ((name, value) for row in values for name, value in zip(names, row, strict=True))
        rows = [(name, Point(value, "PASS", "abc", "2.10.0")) for name, value in pairs]
        history.add(f"s{session}", "2026-01-01T00:00:00Z", "", rows)

    def work() -> None:
        points = history.trend(names[500])
        assert trend([point.value for point in points], 1.0).segments

    work()
    return seconds(work, times=5)


def main() -> None:
    """Prints one table."""
    table = Table("work", "s", "bound s", box=None)
    table.add_row(f"{RESULTS} results × {len(SCALARS)} metrics compared", f"{compare_results():.2f}", "5")
    table.add_row(f"a curve of {STEPS} steps compared", f"{compare_curve():.3f}", "0.5")
    with tempfile.TemporaryDirectory() as folder:
        table.add_row(f"a trend out of {VALUES} values", f"{query_trend(Path(folder)):.3f}", "0.1")
    Console().print(table)


if __name__ == "__main__":
    main()
