"""How long a run takes from being asked for to its first step and to its report, by how its ranks start.

    python benchmarks/start.py

Prints a table; never fails.
"""

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fixtures.scenarios import SHORT  # noqa: E402
from harness import Layout  # noqa: E402
from harness.launch import train  # noqa: E402
from harness.launch.code import Code  # noqa: E402
from harness.launch.placement import STARTS, Placement  # noqa: E402

TIMES = 3
BEFORE_THE_FIRST_STEP = ("start", "join", "build")


def timed(start: str, layout: Layout) -> tuple[float, float]:
    """Seconds from the request to the end of the first step, and to the report."""
    with tempfile.TemporaryDirectory() as folder:
        run_folder = Path(folder) / "run"
        run_folder.mkdir()
        begin = time.perf_counter()
        run = train(
            SHORT.replace(layout=layout), "cpu", Code(ROOT), run_folder, 600.0, placement=Placement(start=start)
        )
        whole = time.perf_counter() - begin
    return sum(run.phases.get(name, 0.0) for name in BEFORE_THE_FIRST_STEP) + run.step_seconds[0], whole


def main() -> None:
    """Measures and prints."""
    for ranks in (1, 2):
        for start in reversed(STARTS):
            found = [timed(start, Layout(dp=ranks)) for _ in range(TIMES + 1)]
            first, whole = (min(column) for column in zip(*found[1:], strict=True))
            cold = f", the first time {found[0][1]:.1f} s" if start == "fork" else ""
            print(f"{ranks} rank(s), {start}: first step after {first:.1f} s, report after {whole:.1f} s{cold}")


if __name__ == "__main__":
    main()
