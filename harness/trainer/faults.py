"""Plants a fault at one seam of a training that is otherwise left as it is."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, nn, ops
from mindspore.dataset import Dataset
from mindspore.train import Callback, RunContext

from harness.faults import Fault
from harness.timeline import EventKind
from harness.trainer.data import COLUMN
from harness.trainer.graph_cache import Graph
from harness.trainer.mishaps import MISHAPS
from harness.trainer.step import TrainStep

if TYPE_CHECKING:
    from harness.trainer.loop import Training


def plant(fault: Fault, training: "Training") -> None:
    """Changes ``training`` in place."""
    {
        "slow_step": _slow_step,
        "slow_rank": _slow_rank,
        "slow_data": _slow_data,
        "memory": _memory,
        "leak": _leak,
        "learning_rate": _learning_rate,
        "dropped_reduction": _dropped_reduction,
        "nan": _nan,
        "degenerate_generator": _degenerate_generator,
        **MISHAPS,
    }[fault.name](fault.amount, training)


class _Sleep(Callback):
    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.start = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self.start = time.perf_counter()

    def on_train_step_end(self, run_context: RunContext) -> None:
        time.sleep(self.share * (time.perf_counter() - self.start))


class _Poison(Callback):
    def __init__(self, step: int, parameter: ms.Parameter) -> None:
        super().__init__()
        self.step = step
        self.parameter = parameter

    def on_train_step_begin(self, run_context: RunContext) -> None:
        if run_context.original_args().cur_step_num == self.step:
            values = self.parameter.asnumpy().copy()
            values.flat[0] = np.nan
            self.parameter.set_data(Tensor(values))


class _Leak(Callback):
    def __init__(self, mebibytes: float) -> None:
        super().__init__()
        self.bytes = int(mebibytes * 2**20)
        self.kept: list[npt.NDArray[np.uint8]] = []

    def on_train_step_end(self, run_context: RunContext) -> None:
        self.kept.append(np.ones(self.bytes, np.uint8))


class _OwnSums(Graph):
    """Takes part in the reduction and goes on with its own sums."""

    def __init__(self, reduce: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.reduce = reduce
        self.traffic = reduce.traffic

    def construct(self, *sums: Tensor) -> tuple[Tensor, ...]:
        reduced = self.reduce(*sums)
        return tuple([ops.depend(x, reduced) for x in sums])


def _slow_step(amount: float, training: "Training") -> None:
    training.callbacks.insert(0, _Sleep(amount))


def _slow_rank(amount: float, training: "Training") -> None:
    if training.rank != training.scenario.layout.world_size - 1:
        return
    recorder = training.engine.recorder
    healthy = recorder.span

    @contextmanager
    def span(kind: EventKind, name: str, peer: int = -1, size: int = 0) -> Iterator[None]:
        with healthy(kind, name, peer, size):
            start = time.perf_counter()
            yield
            if kind == "compute":
                time.sleep(amount * (time.perf_counter() - start))

    recorder.span = span  # type: ignore[method-assign]


def _slow_data(amount: float, training: "Training") -> None:
    healthy = training.passes

    def late(*arguments: Any) -> Iterator[Dataset]:
        def rows(windows: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
            time.sleep(amount)
            return windows

        for dataset in healthy(*arguments):
            yield dataset.map(rows, [COLUMN])

    training.passes = late


def _memory(amount: float, training: "Training") -> None:
    held = ops.ones((int(amount), 2**18), ms.float32)
    held.asnumpy()
    training.held.append(held)


def _leak(amount: float, training: "Training") -> None:
    training.callbacks.insert(0, _Leak(amount))


def _learning_rate(amount: float, training: "Training") -> None:
    healthy = training.rate
    training.rate = lambda step: amount * healthy(step)


def _dropped_reduction(amount: float, training: "Training") -> None:
    if training.rank == training.scenario.layout.world_size - 1:
        assert isinstance(training.step, TrainStep)
        reductions = training.step.reductions
        reductions[0] = _OwnSums(reductions[0])


def _nan(amount: float, training: "Training") -> None:
    training.callbacks.insert(0, _Poison(int(amount), training.engine.parameters[-1]))


def _degenerate_generator(amount: float, training: "Training") -> None:
    first: list[npt.NDArray[np.int32]] = []
    healthy = training.choose

    def repeat(logits: npt.NDArray[np.float32], draws: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        if not first:
            first.append(healthy(logits, draws))
        return first[0]

    training.choose = repeat
