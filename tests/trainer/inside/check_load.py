"""The load that a rank measures."""

import os
import subprocess
import sys
import time

from harness.run import foreign_share
from harness.trainer.load import LoadMeter

SPIN = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"


def test_own_work_is_no_foreign_load_and_a_neighbours_is():
    meter = LoadMeter()
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        pass
    alone = meter.load()
    assert alone.cores == len(os.sched_getaffinity(0))
    assert alone.own > 0.5
    neighbour = subprocess.Popen([sys.executable, "-c", SPIN.format(seconds=30)])
    meter = LoadMeter()
    time.sleep(1.5)
    beside = meter.load()
    neighbour.kill()
    # The child counts as ours once it was waited for; until then it is a neighbour like any other.
    assert foreign_share([beside]) > 0.5 / beside.cores
    assert beside.own < 0.5
