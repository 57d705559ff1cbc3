"""Measures how busy the cores were, with this rank's work and with others'."""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from harness.run import Load

STAT = Path("/proc/stat")
_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of a core's line in /proc/stat: user, nice, system, irq, softirq, steal (proc(5)), in ticks."""


@dataclass(frozen=True)
class _Reading:
    seconds: float
    busy: float
    own: float


class LoadMeter:
    """Measures the load of the cores that this process may use, from its making on."""

    def __init__(self) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._start = self._read()

    def load(self) -> Load | None:
        """The load so far; None where the system does not tell of each of these cores."""
        now = self._read()
        start = self._start
        if now is None or start is None:
            return None
        return Load(
            cores=len(self._cores),
            on=self._cores,
            seconds=now.seconds - start.seconds,
            busy=now.busy - start.busy,
            own=now.own - start.own,
        )

    def _read(self) -> _Reading | None:
        try:
            lines = [line.split() for line in STAT.read_text().splitlines() if line.startswith("cpu")]
            ticks = {name: [int(value) for value in values] for name, *values in lines}
            busy = sum(ticks[f"cpu{core}"][kind] for core in self._cores for kind in _BUSY) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, KeyError, IndexError):
            return None
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return _Reading(time.monotonic(), busy, sum(usage.ru_utime + usage.ru_stime for usage in usages))
