"""What saving costs, and how soon a resumed training makes its first step.

    python benchmarks/recovery.py

Prints a table; never fails.
"""

import shutil
import statistics
import tempfile
import time
from pathlib import Path

from harness import Checkpoints, Guard, Layout, Scenario
from harness.checkpoints.store import FOLDER, Store
from harness.launch import train
from harness.launch.code import Code
from harness.run import Run

TINY = Scenario(model="tiny", steps=40, batch=8, eval_sequences=0)


class Stopwatch:
    """Notes when the first step is seen."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.first: float | None = None

    def __call__(self, step: int, loss: float) -> None:
        """A step was made."""
        if self.first is None:
            self.first = time.perf_counter() - self.start


def steady(run: Run) -> float:
    """Seconds of a step."""
    return statistics.median(run.step_seconds[8:])


def main() -> None:
    """Measures and prints."""
    code, base = Code(Path(__file__).parents[1]), Path(tempfile.mkdtemp(prefix="recovery-"))
    print("saving, every 4 of 40 steps, MB of a checkpoint, s to save it, share of the steps between")
    for name, layout in (("one rank", Layout()), ("dp2, sharded", Layout(dp=2, optimizer_sharding=True))):
        for kind in ("safetensors", "ckpt"):
            scenario = TINY.replace(layout=layout, checkpoints=Checkpoints(every=4, format=kind))
            folder = base / f"{layout.dp}-{kind}"
            run = train(scenario, "cpu", code, folder, 600.0)
            place = Store(folder / FOLDER).path(40)
            size = sum(path.stat().st_size for path in place.iterdir()) / 1e6
            print(f"  {name:14} {kind:12} {size:6.1f} {run['checkpoint_time']:7.3f} {run['checkpoint_share']:7.1%}")
    watch = Stopwatch()
    source = base / "1-safetensors" / FOLDER
    shutil.rmtree(Store(source).path(40))
    saving = TINY.replace(checkpoints=Checkpoints(every=4))
    train(saving, "cpu", code, base / "resumed", 600.0, None, watch, resume=source)
    print(f"resumed: {watch.first:.1f} s from the command to the first step seen (seen twice a second)")
    plain = steady(train(TINY, "cpu", code, base / "plain", 600.0))
    guarded = steady(train(TINY.replace(guard=Guard("skip")), "cpu", code, base / "guarded", 600.0))
    print(f"step {plain:.3f} s; under a guard {guarded / plain - 1:+.1%}")


if __name__ == "__main__":
    main()
