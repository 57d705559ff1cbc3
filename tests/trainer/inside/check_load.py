"""The load that a rank measures."""

import os
import subprocess
import sys
import time

from harness.assemble import foreign_share
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


def test_cores_that_the_system_does_not_tell_of_leave_no_load(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.trainer.load.STAT", tmp_path / "stat")
    assert LoadMeter().load() is None
    (tmp_path / "stat").write_text("cpu  1 2 3 4 5 6 7 8\ncpu999 1 2 3 4 5 6 7 8\n")
    assert LoadMeter().load() is None
