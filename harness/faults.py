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
    "kill_step": (2.0, "the last rank dies before this step"),
    "kill_accumulating": (2.0, "it dies after the first part of this step"),
    "kill_writing": (2.0, "it dies when its part of the checkpoint of this step is written"),
    "kill_saving": (2.0, "the first rank dies when all parts of it are written, before it is marked complete"),
    "kill_saved": (2.0, "it dies after the mark, before old checkpoints are removed"),
    "kill_pruning": (2.0, "it dies while, after this step, an old checkpoint is being removed"),
    "kill_evaluating": (2.0, "the last rank dies while the checkpoint of this step is evaluated"),
    "kill_reporting": (1.0, "it dies before it reports"),
    "kill_after": (1.0, "it dies this many seconds after its first step, wherever it is"),
    "dropped_moments": (1.0, "a resumed training begins with moments of zero"),
    "reset_rate": (1.0, "a resumed training begins with the first step's learning rate"),
    "replayed_data": (1.0, "a resumed training sees this many batches again"),
    "skipped_data": (1.0, "a resumed training leaves this many batches out"),
    "bad_batch": (10.0, "the rows of this step are bytes of no text"),
    "exploding_gradient": (
        10.0,
        "at this step one gradient of the last rank is a million times as large",
    ),
    "lost_random_state": (1.0, "a resumed training draws other random numbers"),
}
"""Name → default amount, and what the amount does."""

_KILLS = {name for name in FAULTS if name.startswith("kill_")}
_OF_STEPS = {"nan", "bad_batch", "exploding_gradient"} | _KILLS - {"kill_reporting", "kill_after"}
_OF_SAVING = {"kill_writing", "kill_saving", "kill_saved", "kill_pruning"}
_OF_RESUMED = {"dropped_moments", "reset_rate", "replayed_data", "skipped_data", "lost_random_state"}
_OF_OUR_STEP = {"dropped_reduction", "exploding_gradient", "kill_accumulating"}
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

    @property
    def needs_resume(self) -> bool:
        """Whether it has an effect in resumed trainings alone."""
        return self.name in _OF_RESUMED

    def applies(self, scenario: Scenario) -> bool:
        """Whether it has an effect in a scenario at all."""
        if self.name in _OF_SAVING and not scenario.checkpoints.every:
            return False
        if self.name in _OF_OUR_STEP and (scenario.engine != "explicit" or scenario.step):
            return False
        if self.name in _OF_STEPS:
            return self.amount <= scenario.steps
        if self.name in _OF_RESUMED:
            return scenario.checkpoints.every > 0
        if self.name == "dropped_reduction":
            return scenario.layout.dp > 1
        if self.name == "slow_rank":
            return scenario.layout.dp > 1
        if self.name == "degenerate_generator":
            return scenario.samples > 0
        return True

    def __str__(self) -> str:
        return f"{self.name}={self.amount!r}"
