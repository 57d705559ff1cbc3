"""A training whose step is the user's: the model, the data and everything that looks at them stay as they are."""

from collections.abc import Callable
from typing import Any

import numpy as np
from mindspore import Tensor

from harness.corpus import IGNORED
from harness.errors import ScenarioError
from harness.references import user_function
from harness.trainer.parallel.explicit import Engine
from harness.trainer.parallel.norm import Agree
from harness.trainer.parallel.traffic import Collective
from harness.trainer.recorder import Recorder


class OwnStep:
    """The user's step, counted and recorded as ours is."""

    def __init__(self, reference: str, function: Callable[..., Any], recorder: Recorder, total: Agree | None) -> None:
        """Takes the function.

        Args:
            reference: its name, for messages.
            function: (windows, rate, step) → mean loss over all ranks, global gradient norm.
            recorder: told of each step.
            total: adds up over replicas; None where there is one.
        """
        self.reference, self.function, self.recorder, self.total = reference, function, recorder, total
        self.tokens_seen = 0
        """That counted in all steps so far, over all ranks."""

    def __call__(self, windows: Tensor, rate: float, step: int) -> tuple[float, float]:
        """Trains on (rows, sequence + 1) windows of this rank.

        Raises:
            ScenarioError: the function returned no two numbers.
        """
        self.recorder.begin(step)
        counted = (windows[:, 1:].asnumpy() != IGNORED).sum(dtype=np.float32)
        self.tokens_seen += round(float(self.total(Tensor([counted])).asnumpy()[0] if self.total else counted))
        with self.recorder.span("compute", "step"):
            found = self.function(windows, rate, step)
            try:
                loss, norm = (float(value) for value in found)
            except (TypeError, ValueError):
                raise ScenarioError(
                    f"step={self.reference!r} returned {type(found).__name__}; return the loss and the gradient norm"
                ) from None
        return loss, norm


class OwnEngine(Engine):
    """An engine that knows of the training what a model and its parameters tell."""

    outputs = ("loss", "grad_norm", "learning_rate")

    in_flight_memory = None
    optimizer_memory = None

    def build(self) -> None:
        """Has the user's function make the step."""
        scenario, group = self.scenario, self.place.groups.data
        self.parameters = self.model.trainable_params()
        function = user_function("step", scenario.step)(self.model, scenario)
        if not callable(function):
            raise ScenarioError(
                f"step={scenario.step!r} made a {type(function).__name__}; return a function of windows, rate, step"
            )
        self.step = OwnStep(scenario.step, function, self.recorder, Agree(group) if group else None)  # type: ignore[assignment]

    def work_alone(self, windows: Tensor) -> None:
        """Nothing: there are no stages."""

    def traffic(self) -> list[Collective]:
        """Nothing: only the function knows."""
        return []
