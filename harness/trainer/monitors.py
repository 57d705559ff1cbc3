"""Monitors: MindSpore callbacks that our loop drives, and that can be hung into ``Model.train`` as well."""

import time
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from mindspore import Tensor
from mindspore.train import Callback, RunContext

from harness.alarms import Alarms

OUTPUTS = ("loss", "grad_norm", "update_norm", "learning_rate")
"""What a step returns, in this order; a network of the user's may return only the first ones."""


class CurveMonitor(Callback):
    """Keeps one value a step of each output of the step."""

    def __init__(self, names: Sequence[str] = OUTPUTS) -> None:
        super().__init__()
        self.names = names
        self.curves: dict[str, list[float]] = {}

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Appends the outputs of the step that just ended."""
        outputs = run_context.original_args().net_outputs
        outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
        for name, value in zip(self.names, outputs, strict=False):
            self.curves.setdefault(name, []).append(_number(value))


class StepTimer(Callback):
    """Wall-clock seconds of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.step_seconds: list[float] = []
        self._start = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Starts the clock."""
        self._start = time.perf_counter()

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Stops it, once the outputs are there: reading one waits for the device."""
        outputs = run_context.original_args().net_outputs
        _number(outputs[0] if isinstance(outputs, tuple | list) else outputs)
        self.step_seconds.append(time.perf_counter() - self._start)


class HostMemoryMonitor(Callback):
    """MiB of this process and its children, every few steps."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every
        self.values: list[float] = []
        self._process = psutil.Process()

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Looks where the step is one of those asked for."""
        if run_context.original_args().cur_step_num % self.every:
            return
        total = 0
        for process in (self._process, *self._process.children(recursive=True)):
            # A worker may end between being listed and being looked at.
            with suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        self.values.append(total / 2**20)


class Every(Callback):
    """Does something every few steps, and keeps what comes of it."""

    def __init__(self, steps: int, do: Callable[[int], Any]) -> None:
        """Prepares.

        Args:
            steps: between one time and the next.
            do: given the number of the step that just ended.
        """
        super().__init__()
        self.steps, self.do = steps, do
        self.results: list[Any] = []

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Does it where the step is one of those asked for."""
        step = run_context.original_args().cur_step_num
        if step % self.steps == 0:
            self.results.append(self.do(step))


class AlarmMonitor(Callback):
    """Shows each step's outputs to the alarms."""

    def __init__(
        self,
        alarms: Alarms,
        scheduled: Callable[[int], float],
        names: Sequence[str] = OUTPUTS,
        skipped: Container[int] = (),
    ) -> None:
        """Takes the alarms.

        Args:
            alarms: look at norms and rates.
            scheduled: the learning rate that a step should have.
            names: of what a step returns.
            skipped: steps without an update.
        """
        super().__init__()
        self.alarms, self.scheduled, self.skipped, self.names = alarms, scheduled, skipped, names

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Looks, where the step returned all that was named."""
        context = run_context.original_args()
        outputs = context.net_outputs
        if isinstance(outputs, tuple) and len(outputs) == len(self.names):
            values = {name: _number(value) for name, value in zip(self.names, outputs, strict=True)}
            step, rate = context.cur_step_num, values["learning_rate"]
            update = None if step in self.skipped else values.get("update_norm")
            self.alarms.look(step, values["grad_norm"], update, rate, self.scheduled(step))


class ProgressMonitor(Callback):
    """Leaves the last step's number and loss in a file, for the process that watches the ranks."""

    def __init__(self, path: Path, seconds: float = 0.5) -> None:
        super().__init__()
        self.path = path
        self.seconds = seconds
        self._next = 0.0

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Writes at most once in ``seconds``."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self.seconds
        context = run_context.original_args()
        outputs = context.net_outputs
        loss = _number(outputs[0] if isinstance(outputs, tuple | list) else outputs)
        self.path.write_text(f"{context.cur_step_num} {loss:.6g}", encoding="utf-8")


def _number(value: float | Tensor) -> float:
    return float(np.mean(value.asnumpy())) if isinstance(value, Tensor) else float(value)


class StepContext(dict[str, Any]):
    """What a callback sees of the loop: entries by attribute, as MindSpore's own context gives them."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Monitors:
    """Calls the callbacks at a step's begin and end; those are the events that monitors use."""

    def __init__(self, callbacks: Sequence[Callback], steps: int) -> None:
        self.callbacks = callbacks
        self.context = StepContext(batch_num=steps, cur_step_num=0, epoch_num=1, cur_epoch_num=1, net_outputs=())
        self.run_context = RunContext(self.context)

    def begin_step(self, step: int) -> None:
        """Announces update ``step``, counted from 1."""
        self.context["cur_step_num"] = step
        for callback in self.callbacks:
            callback.on_train_step_begin(self.run_context)

    def end_step(self, outputs: tuple[float, ...]) -> None:
        """Hands the step's outputs round."""
        self.context["net_outputs"] = outputs
        for callback in self.callbacks:
            callback.on_train_step_end(self.run_context)
