"""Where the time of a rank goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    """Seconds of each phase, added up over all times that it came."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Counts what is done in the context as one phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - start)

    def add(self, name: str, seconds: float) -> None:
        """Adds time that was taken elsewhere."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
