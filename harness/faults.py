"""Faults that can be planted into a real run, to see that the gate catches them."""

import difflib
import math
import re
from dataclasses import dataclass

from harness.errors import ScenarioError
from harness.scenario import Scenario

FAULTS = {
    "slow_step": (1.0, "every step takes this share longer"),
    "slow_rank": (2.0, "the last rank computes this share longer"),
    "slow_data": (0.1, "every batch comes this many seconds later"),
    "memory": (64.0, "this many MiB stay allocated in MindSpore's pool"),
    "leak": (1.0, "this many MiB of host memory are kept at each step"),
    "learning_rate": (10.0, "the learning rate is multiplied by this"),
    "dropped_reduction": (1.0, "the last rank goes on with its own, unreduced sums"),
    "nan": (3.0, "a weight turns NaN before this step"),
    "degenerate_generator": (1.0, "sampling repeats its first token"),
}
"""Name → default amount, and what the amount does."""

_TEXT = re.compile(r"(\w+)(?:=(\S+))?")


@dataclass(frozen=True)
class Fault:
    """One planted fault. It is no part of the scenario: a faulty run is judged by the healthy run's baseline."""

    name: str
    """A key of ``FAULTS``."""

    amount: float
    """What it means, ``FAULTS`` says."""

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Reads ``NAME`` or ``NAME=AMOUNT``.

        Raises:
            ScenarioError: the name is unknown or the amount is no number.
        """
        match = _TEXT.fullmatch(text)
        name = match[1] if match else text
        if not match or name not in FAULTS:
            near = difflib.get_close_matches(name, FAULTS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"faults are {', '.join(FAULTS)}"
            raise ScenarioError(f"fault {text!r} is unknown; {hint}")
        try:
            amount = float(match[2]) if match[2] else FAULTS[name][0]
        except ValueError:
            amount = math.nan
        if not 0 < amount < math.inf:
            raise ScenarioError(f"fault {text!r}: {match[2]!r} is no positive number")
        return cls(name, amount)

    def applies(self, scenario: Scenario) -> bool:
        """Whether it has an effect in a scenario at all."""
        if self.name == "nan":
            return self.amount <= scenario.steps
        if self.name == "dropped_reduction":
            return scenario.layout.dp > 1 and scenario.engine == "explicit"
        if self.name == "slow_rank":
            return scenario.layout.dp > 1
        if self.name == "degenerate_generator":
            return scenario.samples > 0
        return True

    def __str__(self) -> str:
        return f"{self.name}={self.amount!r}"
