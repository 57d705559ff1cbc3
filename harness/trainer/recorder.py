"""Records what a rank does when."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from harness.metrics.speed import WARMUP_STEPS
from harness.timeline import Event, EventKind

RECORDED_STEPS = 6
"""Last steps whose events are kept."""


class Recorder:
    """The events of the last steps. What is timed must be done, not only begun, when its span ends."""

    def __init__(self) -> None:
        self.step = 0
        self._alone: list[Event] = []
        self._steps: deque[list[Event]] = deque(maxlen=RECORDED_STEPS)

    def begin(self, step: int) -> None:
        """Begins a step, numbered from 1; the first ones compile and are not recorded."""
        self.step = step
        if step > WARMUP_STEPS:
            self._steps.append([])

    @contextmanager
    def span(self, kind: EventKind, name: str, peer: int = -1, size: int = 0) -> Iterator[None]:
        """Records what the body does."""
        start = time.monotonic()
        yield
        end = time.monotonic()
        if kind == "alone":
            self._alone.append(Event(0, kind, name, start, end))
        elif self._steps:
            self._steps[-1].append(Event(self.step, kind, name, start, end, peer, size))

    @property
    def events(self) -> list[Event]:
        """All that are kept: of the steps, in order, then what was done alone."""
        return [*(event for step in self._steps for event in step), *self._alone]
