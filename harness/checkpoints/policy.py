"""When a training saves itself, and what of it is kept. Pure."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness.errors import ScenarioError
from harness.evaluation import Evaluation

Format = Literal["safetensors", "ckpt"]
Best = Literal["", "perplexity", "token_accuracy"]
MADE = 25
"""Checkpoints of a run whose cadence is left to us."""


@dataclass(frozen=True)
class Checkpoints:
    """A training's checkpoints.

    Raises:
        ScenarioError: a value is out of range.
    """

    every: int = 0
    """Updates between two; 0 keeps none. The last update is always followed by one."""

    kept: int = 5
    """Newest ones that stay on disk. Of those that an alarm asked for, as many stay beside them."""

    best: Best = ""
    """The one that stays whatever its age: of the lowest held-out ``perplexity``, or the highest ``token_accuracy``."""

    format: Format = "safetensors"
    """Of their arrays: ``safetensors``, or ``ckpt``, which is MindSpore's own."""

    def __post_init__(self) -> None:
        for name, low in (("every", 0), ("kept", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise ScenarioError(f"checkpoints.{name} must be a whole number of at least {low}, not {value!r}")
        for name, choices in (("best", get_args(Best)), ("format", get_args(Format))):
            if getattr(self, name) not in choices:
                known = ", ".join(repr(choice) for choice in choices)
                raise ScenarioError(f"checkpoints.{name}={getattr(self, name)!r} is unknown; choose one of {known}")

    @classmethod
    def over(cls, steps: int, **more: Any) -> "Checkpoints":
        """Checkpoints of a run of ``steps`` updates, about 25 of them."""
        return cls(every=max(1, math.ceil(steps / MADE)), **more)

    def is_due(self, step: int, last: int) -> bool:
        """Whether update ``step`` of a training that ends with update ``last`` is followed by one."""
        return self.every > 0 and (step % self.every == 0 or step == last)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one a field."""
        return {"every": self.every, "kept": self.kept, "best": self.best, "format": self.format}


def superfluous(steps: Iterable[int], kept: int, alarmed: Collection[int], best: int | None) -> list[int]:
    """The checkpoints that may go, oldest first; never the newest.

    Args:
        steps: of all that are complete.
        kept: newest ones that stay.
        alarmed: those that an alarm asked for; the newest ``kept`` of them stay too.
        best: stays whatever its age.
    """
    ordered = sorted(steps)
    stay = {*ordered[-kept:], *sorted(alarmed)[-kept:], best}
    return [step for step in ordered if step not in stay]


def best_of(evaluations: dict[int, Evaluation], by: Best) -> int | None:
    """The step of the best evaluation, of equal ones the first; None where there is none, or nobody asks."""
    known = {step: found for step, found in evaluations.items() if found.tokens}
    if not by or not known:
        return None
    if by == "perplexity":
        # A perplexity that is no number is the worst.
        return min(known, key=lambda step: (not known[step].nll < math.inf, known[step].perplexity, step))
    return min(known, key=lambda step: (-known[step].accuracy, step))
