"""Plants what goes wrong in the long run: a rank that dies at a certain moment, a training that is resumed wrongly."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mindspore import Parameter, Tensor
from mindspore.train import Callback, RunContext

from harness.trainer.parallel.explicit import Engine
from harness.trainer.parallel.traffic import Collective
from harness.trainer.step import TrainStep

if TYPE_CHECKING:
    from harness.trainer.loop import Training


def die() -> None:
    """As the system ends a process: at once, and without a word."""
    os.kill(os.getpid(), signal.SIGKILL)


class _Death(Callback):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def on_train_step_begin(self, run_context: RunContext) -> None:
        if run_context.original_args().cur_step_num == self.step:
            die()


class _Clock(Callback):
    """Dies some seconds after the first step, which compiles, wherever the process is then."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.timer: threading.Timer | None = None

    def on_train_step_end(self, run_context: RunContext) -> None:
        if self.timer is None:
            self.timer = threading.Timer(self.seconds, die)
            self.timer.daemon = True
            self.timer.start()


def _around(owner: Any, name: str, before: Callable[[], bool], after: bool = False) -> None:
    """Has a method die before, or after, it did its work, where ``before`` says that the time has come."""
    healthy = getattr(owner, name)

    def deadly(*arguments: Any, **named: Any) -> Any:
        # Asked before the work is done: what comes after it may count a step more.
        now = before()
        if now and not after:
            die()
        found = healthy(*arguments, **named)
        if now:
            die()
        return found

    setattr(owner, name, deadly)


def _is_last(training: "Training") -> bool:
    return training.rank == training.scenario.layout.world_size - 1


def kill_step(amount: float, training: "Training") -> None:
    """Before an update."""
    if _is_last(training):
        training.callbacks.insert(0, _Death(int(amount)))


def kill_accumulating(amount: float, training: "Training") -> None:
    """After the first part of an update."""
    step = training.step
    if _is_last(training) and isinstance(step, TrainStep):
        _around(step, "gradients", lambda: training.done + 1 == int(amount), after=True)


def kill_writing(amount: float, training: "Training") -> None:
    """When a rank has written its part, and has not said so."""
    if _is_last(training):
        _around(training.saver, "write", lambda: training.done == int(amount), after=True)


def kill_saving(amount: float, training: "Training") -> None:
    """When all parts are written, before the mark."""
    _around(training.saver, "complete", lambda: training.done == int(amount))


def kill_saved(amount: float, training: "Training") -> None:
    """After the mark, before old ones are removed."""
    _around(training.saver, "prune", lambda: training.done == int(amount))


def kill_pruning(amount: float, training: "Training") -> None:
    """While an old one is being removed."""
    _around(training.store, "erase", lambda: training.done == int(amount))


def kill_evaluating(amount: float, training: "Training") -> None:
    """While a checkpoint is evaluated."""
    if _is_last(training):
        _around(training, "full_evaluation", lambda: training.done == int(amount))


def kill_reporting(amount: float, training: "Training") -> None:
    """When everything is done, and nothing of it is written."""
    if _is_last(training):
        _around(training, "report", lambda: True, after=True)


def kill_after(amount: float, training: "Training") -> None:
    """So many seconds after its first step."""
    if _is_last(training):
        training.callbacks.insert(0, _Clock(amount))


def dropped_moments(amount: float, training: "Training") -> None:
    """Resumes with moments of zero."""
    if training.restored:

        def parameters(engine: Engine) -> list[Parameter]:
            states = {id(state) for state in engine.step.update.optimizer.states()}
            return [each for each in engine.saved() if id(each) not in states]

        training.restored.parameters = parameters


def reset_rate(amount: float, training: "Training") -> None:
    """Resumes with the learning rate of the first step."""
    if training.restored:
        healthy, done = training.rate, training.restored.step
        training.rate = lambda step: healthy(step - done)


def _moved(batches: int, amount: float, training: "Training") -> None:
    if training.restored:
        moved = batches * int(amount) * training.scenario.batch
        training.restored.samples = max(0, training.restored.samples + moved)


def lost_random_state(amount: float, training: "Training") -> None:
    """Resumes with generators as a fresh process has them."""
    if training.restored:
        training.restored.set_random = lambda state: None


def bad_batch(amount: float, training: "Training") -> None:
    """A batch of bytes that are no text."""
    healthy = training.batches

    def spoiled(datasets: Any) -> Iterator[Any]:
        for (windows,) in healthy(datasets):
            if training.done + 1 == int(amount):
                rows = np.random.default_rng(0).integers(128, 256, windows.shape, np.int32)
                windows = Tensor(rows)
            yield (windows,)

    training.batches = spoiled


class _Corruption:
    """Stands behind the reductions of a step and spoils one gradient."""

    def __init__(self, training: "Training", step: int) -> None:
        self.training, self.step = training, step
        self.index = 2 + len(training.engine.parameters) // 2

    def __call__(self, *sums: Tensor) -> tuple[Tensor, ...]:
        found = list(sums)
        if self.training.done + 1 == self.step:
            found[self.index] = found[self.index] * 1e6
        return tuple(found)

    def traffic(self) -> list[Collective]:
        return []


def exploding_gradient(amount: float, training: "Training") -> None:
    """On the last rank, after reduction, the gradient of a parameter in the middle is a million times as large."""
    assert isinstance(training.step, TrainStep)
    if _is_last(training):
        training.step.reductions.append(_Corruption(training, int(amount)))


MISHAPS: dict[str, Callable[[float, "Training"], None]] = {
    **{
        kill.__name__: kill
        for kill in (
            kill_step,
            kill_accumulating,
            kill_writing,
            kill_saving,
            kill_saved,
            kill_pruning,
            kill_evaluating,
            kill_reporting,
            kill_after,
            dropped_moments,
            reset_rate,
            lost_random_state,
            bad_batch,
            exploding_gradient,
        )
    },
    "replayed_data": partial(_moved, -1),
    "skipped_data": partial(_moved, 1),
}
"""By name."""
