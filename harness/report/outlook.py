"""How much of a session is left, and about how long that takes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import mean


@dataclass
class Outlook:
    """What is left of a session."""

    left: dict[str, tuple[float, int] | None]
    """Tests that are not done, by node id: the seconds that each took when it was last run, and its trainings; None for
    one that was never run."""

    workers: int = 1
    """That share the session."""

    taken: list[float] = field(default_factory=list)
    """Seconds that the tests took that are done."""

    @classmethod
    def of(cls, tests: Iterable[str], known: Mapping[str, tuple[float, int]], workers: int = 1) -> "Outlook":
        """Begins a session.

        Args:
            tests: node ids.
            known: what tests took when they were last run.
            workers: that share the session.
        """
        return cls({test: known.get(test) for test in tests}, workers)

    def done(self, test: str, seconds: float) -> None:
        """Takes a test off the list."""
        if test in self.left:
            del self.left[test]
            self.taken.append(seconds)

    @property
    def seconds(self) -> float | None:
        """How long the rest takes; a test that was never run takes what others do. None where nothing is known."""
        known = [found[0] for found in self.left.values() if found]
        typical = [*known, *self.taken]
        if not typical:
            return None
        return (sum(known) + mean(typical) * (len(self.left) - len(known))) / self.workers

    def __str__(self) -> str:
        """In words."""
        if not self.left:
            return "nothing left"
        known = [found[1] for found in self.left.values() if found]
        runs = f" of {count(sum(known), 'run')}" if len(known) == len(self.left) else ""
        took = self.seconds
        about = "for how long is not known yet" if took is None else f"about {duration(took)}"
        return f"{count(len(self.left), 'test')}{runs} left, {about}"


def duration(seconds: float) -> str:
    """Seconds as a person would say them: ``40 s``, ``6 min``."""
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} min"


def count(number: int, what: str) -> str:
    """``1 test``, ``2 tests``."""
    return f"{number} {what}{'s' * (number != 1)}"
