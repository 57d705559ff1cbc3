"""Tells, before an update is made, that a loss or a gradient norm is none, or far from what it was. Pure."""

import math
import statistics
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness.errors import ScenarioError

LARGEST, SMALLEST = sys.float_info.max, 1e-30
Policy = Literal["", "stop", "skip"]
FEWEST = 10
"""Steps that must be known before a finite value can be a spike."""

NORMAL = 1.4826
"""Standard deviations of a normal distribution in one median absolute deviation (Rousseeuw & Croux 1993)."""

LEAST = {"loss": 0.02, "grad_norm": 0.15}
"""Least deviation of a value's logarithm, whatever the last values were: a loss that hardly moves is not judged by it,
and in healthy trainings single norms are up to nine times as large as is usual (docs/recovery.md)."""


@dataclass(frozen=True)
class Guard:
    """What is done about a spike: a loss or a gradient norm that is not finite, or far above the last ones.

    Raises:
        ScenarioError: a value is out of range.
    """

    policy: Policy = ""
    """``stop`` ends the training at the last of ``consecutive`` spikes; ``skip`` leaves each one's update out, and ends
    it at the last of them too. An update that is no number is never made, and that of the last spike neither. The first
    spike saves the training as it was before. Empty, nobody looks."""

    consecutive: int = 3
    """Spikes in a row that end a training."""

    window: int = 20
    """Steps that a value is compared with."""

    deviations: float = 15.0
    """Robust standard deviations of its logarithm above the median from which on a value is a spike."""

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise ScenarioError(
                f"guard.policy={self.policy!r} is unknown; choose one of 'stop', 'skip', or '' for none"
            )
        for name, low in (("consecutive", 1), ("window", FEWEST)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise ScenarioError(f"guard.{name} must be a whole number of at least {low}, not {value!r}")
        value = self.deviations
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ScenarioError(f"guard.deviations must be a finite number above 0, not {value!r}")
        object.__setattr__(self, "deviations", float(value))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one a field."""
        return {
            "policy": self.policy,
            "consecutive": self.consecutive,
            "window": self.window,
            "deviations": self.deviations,
        }


@dataclass(frozen=True)
class Spike:
    """One step's."""

    step: int
    what: str
    """``loss`` or ``grad_norm``."""

    value: float
    usual: float
    """Median of the steps before; NaN where too few are known."""

    limit: float
    """From which on a value is a spike."""

    in_a_row: int
    """Spikes up to this one without a healthy step between."""

    @property
    def is_finite(self) -> bool:
        """Whether the value is a number at all."""
        return math.isfinite(self.value)

    def __str__(self) -> str:
        against = f"it was about {self.usual:.4g}, and {self.limit:.4g} is a spike" if self.usual == self.usual else ""
        told = f"step {self.step}: {self.what} is {self.value:.6g}"
        return f"{told}; {against}" if against else told


class Watch:
    """Looks at each step's loss and norm; spikes never count among what is usual."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._usual: dict[str, deque[float]] = {name: deque(maxlen=guard.window) for name in ("loss", "grad_norm")}
        self._in_a_row = 0
        self._before = 0
        """Spikes in a row before the step that was looked at last."""

    def look(self, step: int, loss: float, grad_norm: float) -> Spike | None:
        """A spike, where the step is one.

        Args:
            step: its number.
            loss: of the step's batch, before its update.
            grad_norm: global norm of the gradient, before clipping.
        """
        self._before = self._in_a_row
        found = None
        for what, value in (("loss", loss), ("grad_norm", grad_norm)):
            usual, limit = bounds(self._usual[what], self.guard.deviations, LEAST[what])
            if found is None and not (math.isfinite(value) and value <= limit):
                found = Spike(step, what, value, usual, limit, self._in_a_row + 1)
        if found:
            self._in_a_row += 1
            return found
        self._in_a_row = 0
        self._usual["loss"].append(loss)
        self._usual["grad_norm"].append(grad_norm)
        return None

    def follow(self, step: int, loss: float) -> Spike:
        """A spike that another rank saw, where this one saw none."""
        self._usual["loss"].pop()
        self._usual["grad_norm"].pop()
        self._in_a_row = self._before + 1
        usual, limit = bounds(self._usual["loss"], self.guard.deviations, LEAST["loss"])
        return Spike(step, "loss on another rank", loss, usual, limit, self._in_a_row)


def bounds(values: Sequence[float], deviations: float, least: float) -> tuple[float, float]:
    """Median of the last values, and what lies ``deviations`` robust standard deviations of their logarithm above it.

    Of fewer than ten values nothing can be said: any finite value is then as good as another.

    Args:
        values: at least 0.
        deviations: how many.
        least: of a deviation, whatever the values are.
    """
    if len(values) < FEWEST:
        return math.nan, LARGEST
    logs = [math.log(max(value, SMALLEST)) for value in values]
    middle = statistics.median(logs)
    spread = NORMAL * statistics.median([abs(log - middle) for log in logs])
    return math.exp(middle), math.exp(min(middle + deviations * max(spread, least), math.log(LARGEST)))
