"""Measures how busy the cores were, with this rank's work and with others'."""

import os
import resource
import time
from dataclasses import dataclass

import psutil

from harness.run import Load

_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")


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

    def load(self) -> Load:
        """The load so far."""
        now = self._read()
        start = self._start
        return Load(
            cores=len(self._cores),
            seconds=now.seconds - start.seconds,
            busy=now.busy - start.busy,
            own=now.own - start.own,
        )

    def _read(self) -> _Reading:
        times = psutil.cpu_times(percpu=True)
        busy = sum(getattr(times[core], kind, 0.0) for core in self._cores if core < len(times) for kind in _BUSY)
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return _Reading(time.monotonic(), busy, sum(usage.ru_utime + usage.ru_stime for usage in usages))
