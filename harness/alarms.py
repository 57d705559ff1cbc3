"""What a training's steps say: an update that vanishes, a norm that rises, a rate that left its schedule. Pure."""

import statistics
from collections import deque

WINDOW = 20
"""Steps that a value is compared with."""

FEWEST = 5
"""Steps that must be known before anything is said."""

VANISHED = 1e-3
"""Share of its usual size below which an update counts as none."""

RISEN = 10.0
"""Times its usual size at which a gradient norm is too large."""

IN_A_ROW = 3
"""Steps that a norm must be too large: single ones are clipped, and forgotten."""

OFF_SCHEDULE = 1e-6
"""Share by which a learning rate may differ from its schedule's."""


class Alarms:
    """Looks at each step. Each kind of alarm is given once, at the first step that shows it."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self._norms: deque[float] = deque(maxlen=WINDOW)
        self._updates: deque[float] = deque(maxlen=WINDOW)
        self._large = 0

    def look(self, step: int, grad_norm: float, update_norm: float | None, rate: float, scheduled: float) -> None:
        """Looks at a step.

        Args:
            step: its number.
            grad_norm: global norm of the gradient before clipping.
            update_norm: global norm of what was added to the parameters; None where nobody knows it.
            rate: the learning rate it was made with.
            scheduled: the one that the scenario says.
        """
        if abs(rate - scheduled) > OFF_SCHEDULE * abs(scheduled):
            self._give(
                "rate", f"step {step}: the learning rate left its schedule: {rate:.6g} instead of {scheduled:.6g}"
            )
        if len(self._norms) >= FEWEST:
            usual = statistics.median(self._norms)
            self._large = self._large + 1 if grad_norm > RISEN * usual else 0
            if self._large == IN_A_ROW:
                self._give(
                    "norm",
                    f"step {step}: the gradient norm rose to {grad_norm:.4g} and stayed there for {IN_A_ROW} steps; "
                    f"before, it was about {usual:.4g}",
                )
        # Updates are as large as the rate: what tells is how far one goes for it.
        if update_norm is not None and rate > 0:
            reach = update_norm / rate
            if len(self._updates) >= FEWEST and reach < VANISHED * statistics.median(self._updates):
                self._give(
                    "update", f"step {step}: the update vanished: its norm is {update_norm:.4g}, nothing is learned"
                )
            self._updates.append(reach)
        if not self._large:
            self._norms.append(grad_norm)

    def _give(self, kind: str, text: str) -> None:
        self.given.setdefault(kind, text)
