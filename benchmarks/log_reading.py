"""How fast a MindFormers log is read, and in how much memory.

    python benchmarks/log_reading.py [MEGABYTES]

Prints a line; never fails.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from harness.readers.log import read

LINE = (
    "2026-01-01 00:00:00,000 - mindformers[callback.py:100] - INFO - {{ Epoch:[  1/  2], step:[{step:7}/9999999], "
    "loss: {loss:.6f}, per_step_time: 9854ms, lr: 1e-05, overflow cond: False, loss_scale: 1.0, global_norm: [4.4], "
    "train_throughput_per_npu: 170.123T\n"
)
OTHER = "2026-01-01 00:00:00,000 - mindformers[other.py:7] - INFO - a line that speaks of nothing that is looked for\n"
STEPS = 200_000
"""A long training; what is above them are other lines, as in most logs."""


def main() -> None:
    """Measures and prints."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "training.log"
        with path.open("w") as file:
            step = 0
            while file.tell() < megabytes * 2**20:
                if step < STEPS:
                    step += 1
                    file.write(LINE.format(step=step, loss=10 / step))
                file.write(OTHER * 30)
        start = time.perf_counter()
        found = read(path)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    steps = len(found.curves["loss"])
    print(f"{megabytes} MiB, {found.lines} lines, {steps} steps: {seconds:.1f} s, {peak:.0f} MiB at the peak")


if __name__ == "__main__":
    main()
