"""The training loop of one rank: builds what the scenario names, trains, evaluates, samples, and reports."""

import math
import statistics
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, nn
from mindspore.dataset import Dataset
from mindspore.train import Callback

from harness import corpus
from harness.alarms import Alarms
from harness.checkpoints.state import RankState
from harness.checkpoints.store import FOLDER, Store
from harness.errors import DataError, ScenarioError
from harness.evaluation import Evaluation
from harness.launch.request import PROGRESS, Request
from harness.models import sizes_of
from harness.references import user_function
from harness.run import MOST_VALUES, Load, RankReport, spacing
from harness.scenario import Scenario
from harness.trainer.auto.engine import AutoEngine
from harness.trainer.checkpoint import Restored, Saver, replay
from harness.trainer.data import passes
from harness.trainer.evaluate import Evaluator, Score
from harness.trainer.generate import Choose, Writer
from harness.trainer.load import LoadMeter
from harness.trainer.model import Decoder, batch_statistics, recompute
from harness.trainer.monitors import (
    AlarmMonitor,
    CurveMonitor,
    Every,
    HostMemoryMonitor,
    Monitors,
    ProgressMonitor,
    StepTimer,
)
from harness.trainer.optimizer import learning_rate
from harness.trainer.own_step import OwnEngine
from harness.trainer.parallel.data import share
from harness.trainer.parallel.explicit import Engine, Place
from harness.trainer.parallel.groups import Groups
from harness.trainer.phases import Phases
from harness.trainer.profiler import StepProfiler
from harness.trainer.random_state import hidden
from harness.trainer.sentry import Sentry
from harness.trainer.tracer import Tracer

TROUBLE = 1.05
"""Times the best perplexity of a few sequences beyond which all of them are evaluated at once."""


class Training:
    """One rank's training. Its attributes are the seams at which a fault can be planted."""

    def __init__(
        self,
        scenario: Scenario,
        rank: int,
        groups: Groups,
        request: Request,
        folder: Path,
        phases: Phases | None = None,
    ) -> None:
        root = Path(request.root)
        self.phases = phases or Phases()
        self.scenario = scenario
        self.rank = rank
        self.last = request.until or scenario.steps
        self.done = 0
        self.samples_seen = 0
        self.corpus = corpus.load(scenario, root)
        self.warnings = list(self.corpus.warnings)
        self.engine: Engine | AutoEngine
        if scenario.engine == "explicit":
            model = build_model(scenario)
            self.warnings += batch_statistics(model, scenario)
            kind = OwnEngine if scenario.step else Engine
            self.engine = kind(model, scenario, Place.of(scenario, rank, groups))
        else:
            self.engine = AutoEngine(scenario, rank, root, folder)
        self.step = self.engine.step
        self.rate: Callable[[int], float] = lambda step: learning_rate(scenario, step)
        self.choose: Choose = scenario.decoding.choose
        self.curves = CurveMonitor(self.engine.outputs)
        self.timer = StepTimer()
        self.callbacks: list[Callback] = [self.curves, self.timer]
        self.held: list[Tensor] = []
        self.passes: Callable[..., Iterator[Dataset]] = passes
        self.batches: Callable[[Iterable[Dataset]], Iterator[Any]] = self.waited_for
        self.data_seconds: list[float] = []
        self.told: dict[str, list[float]] = {}
        """Curves of what the step does not return."""

        if rank == scenario.reporting_rank:
            self.callbacks.append(ProgressMonitor(folder / PROGRESS))
        # Every rank evaluates, so that none waits inside a timed step for one that does.
        self.evaluator = self._evaluator(scenario.eval_sequences) if scenario.eval_sequences else None
        self.alarms = Alarms()
        self.skipped: list[int] = []
        """Steps whose update the guard left out."""

        self.callbacks.append(
            AlarmMonitor(self.alarms, lambda step: learning_rate(scenario, step), self.engine.outputs, self.skipped)
        )
        self._evaluated: tuple[int, Evaluation] | None = None
        self.quick = self._evaluator(scenario.quick_sequences) if scenario.quick_sequences else self.evaluator
        self.evaluations: list[Evaluation] = self._every(scenario.eval_every, self.evaluate)
        self.samplings: list[list[list[int]]] = self._every(scenario.sample_every, lambda step: self.samples())
        self.host_memory = HostMemoryMonitor(spacing(scenario.steps))
        self.profiler = StepProfiler(folder / f"profile-{rank}", scenario.profiled_steps)
        if scenario.profiled_steps:
            self.callbacks.append(self.profiler)
        if scenario.steps >= MOST_VALUES:
            self.callbacks.append(self.host_memory)
        self.positions: npt.NDArray[np.int64] = np.empty(0, np.int64)
        """In the training split, of the rows that this rank trains on now."""

        self.sentry: Sentry | None = None
        if scenario.guard.policy:
            assert isinstance(self.engine, Engine)
            self.sentry = self.engine.step.sentry = Sentry(self, self.engine, folder)
        self.tracer: Tracer | None = None
        if scenario.trace_every:
            assert isinstance(self.engine, Engine)
            self.tracer = self.engine.step.tracer = Tracer(self, self.engine, folder)
        self.store = Store(folder / FOLDER)
        self.saver = Saver(self, self.store, self.last)
        self.restored = Restored(self, self.store, request.resume) if request.resume else None
        if scenario.checkpoints.every:
            self.callbacks.append(self.saver)
            self._warn_of_hidden_state()

    def _every(self, steps: int, do: Callable[[int], Any]) -> list[Any]:
        """Has something done every so many steps, never for 0; what comes of it, as it comes."""
        monitor = Every(steps, do)
        if steps:
            self.callbacks.append(monitor)
        return monitor.results

    def _evaluator(self, sequences: int) -> Evaluator:
        assert isinstance(self.engine, Engine)
        held_out = corpus.evenly_spaced(self.corpus.held_out, self.scenario.eval_sequences)
        rows = min(16, len(held_out))
        return Evaluator(*self.evaluation, corpus.evenly_spaced(held_out, sequences), rows)

    @cached_property
    def evaluation(self) -> tuple[Score, Callable[[bool], object]]:
        """How the engine evaluates; compiled once for all evaluators."""
        assert isinstance(self.engine, Engine)
        return self.engine.evaluation()

    @cached_property
    def writer(self) -> Writer:
        """How the engine continues as many prompts as the scenario samples; compiled once for all samplings."""
        assert isinstance(self.engine, Engine)
        rows = min(self.scenario.samples, len(self.corpus.held_out))
        return Writer(self.engine.next_logits(), self.scenario.sequence, self.engine.memory(rows))

    def _warn_of_hidden_state(self) -> None:
        assert isinstance(self.engine, Engine)
        names = hidden(self.engine.model)
        if names:
            self.warnings.append(
                f"{', '.join(names[:3])}: MindSpore keeps what they draw from in its kernels, where nobody can save "
                "it; a resumed training draws other numbers"
            )

    def full_evaluation(self, step: int) -> Evaluation:
        """All held-out sequences, evaluated once a step."""
        assert self.evaluator is not None
        if self._evaluated is None or self._evaluated[0] != step:
            with self.phases("evaluate"):
                self._evaluated = step, self.evaluator()
        return self._evaluated[1]

    def evaluate(self, step: int) -> Evaluation:
        """Evaluates during training: a few sequences where so many were asked for, and all of them on trouble."""
        assert self.quick is not None
        if self.quick is self.evaluator:
            found = self.full_evaluation(step)
        else:
            with self.phases("evaluate"):
                found = self.quick()
        best = min((each.perplexity for each in self.evaluations), default=math.inf)
        if self.quick is not self.evaluator and not found.perplexity <= TROUBLE * best:
            self.warnings.append(
                f"step {step}: perplexity on {self.scenario.quick_sequences} held-out sequences is "
                f"{found.perplexity:.6g} after {best:.6g}; on all of them it is "
                f"{self.full_evaluation(step).perplexity:.6g}"
            )
        return found

    def go_on(self, step: int, samples: int, state: RankState) -> None:
        """Takes over what was seen before.

        Args:
            step: updates that were made.
            samples: rows that they were made of.
            state: of the rank that made them.
        """
        assert isinstance(self.engine, Engine)
        self.done, self.samples_seen = step, samples
        # A curve that was not kept from the first step on would say each value of another step.
        told = {name: list(values) for name, values in state.curves.items() if len(values) == step}
        self.curves.curves = {name: told.pop(name) for name in self.engine.outputs if name in told}
        self.told = told
        self.engine.step.tokens_seen = int(told["tokens_seen"][-1])
        self.evaluations[:], self.samplings[:] = state.evaluations, state.samplings
        self.saver.evaluations[:] = state.checkpoint_evaluations
        self.skipped[:] = state.skipped
        self.warnings = list(dict.fromkeys([*state.warnings, *self.warnings]))
        replay(self, state)
        self.saver.goes_on()

    def all_curves(self) -> dict[str, list[float]]:
        """One value a step of everything that has one."""
        return {**self.curves.curves, **self.told}

    def run(self) -> RankReport:
        """Trains to the end, or until it is to be stopped.

        Raises:
            CheckpointError: another training saves into its folder, or what it is to go on from is not whole.
        """
        with self.store.owned() if self.saves and self.rank == 0 else nullcontext():
            if self.restored:
                self.restored.apply()
            return self._train()

    @property
    def saves(self) -> bool:
        """Whether it may leave checkpoints."""
        return self.scenario.checkpoints.every > 0 or self.sentry is not None

    def _train(self) -> RankReport:
        scenario = self.scenario
        steps = self.last - self.done
        order = corpus.sample_order(len(self.corpus.train), scenario.batch, steps, scenario.seed, self.samples_seen)
        own = order
        if scenario.engine == "explicit":
            replica = scenario.layout.position(self.rank)[1]
            own = share(order.T, scenario.layout.dp, replica).T
        datasets = self.passes(scenario, self.corpus.train, own) if steps else ()
        meter = LoadMeter()
        monitors = Monitors(self.callbacks, scenario.steps)
        for rows, positions, (windows,) in zip(order, own, self.batches(datasets), strict=True):
            step, self.positions = self.done + 1, positions
            monitors.begin_step(step)
            if self.tracer:
                self.tracer.before(step, windows)
            if self.sentry:
                self.saver.remember()
            rate = self.rate(step)
            outputs = (*self.step(windows, rate, step), rate)
            self.done, self.samples_seen = step, self.samples_seen + int((rows >= 0).sum())
            self.tell("tokens_seen", self.engine.tokens_seen)
            if self.saves and len(self.told.get("batch_checksum", ())) == step - 1:
                self.tell("batch_checksum", zlib.crc32(windows.asnumpy().tobytes()))
            monitors.end_step(outputs)
        load = meter.load()
        if isinstance(self.engine, Engine) and steps:
            with self.phases("train"):
                self.engine.work_alone(windows)
        report = self.report(load)
        self._time_steps()
        return report.model_copy(update={"phases": self.phases.seconds})

    def tell(self, name: str, value: float) -> None:
        """Adds a step's value to a curve."""
        self.told.setdefault(name, []).append(float(value))

    def waited_for(self, datasets: Iterable[Dataset]) -> Iterator[Any]:
        """Hands on the batches of all datasets, and notes how long each took to come.

        Raises:
            DataError: the data can no longer be read.
        """
        batches = chain.from_iterable(dataset.create_tuple_iterator(num_epochs=1) for dataset in datasets)
        while True:
            start = time.perf_counter()
            try:
                found = next(batches)
            except StopIteration:
                return
            except (RuntimeError, ValueError) as error:
                raise DataError(
                    f"data={self.scenario.data!r} could not be read after step {self.done} of {self.scenario.steps}: "
                    f"{reason(error)}; see that it is still there and whole"
                ) from None
            self.data_seconds.append(time.perf_counter() - start)
            yield found

    def report(self, load: Load | None) -> RankReport:
        """What this rank measured, evaluated and wrote."""
        return RankReport(
            rank=self.rank,
            scenario_hash=self.scenario.hash,
            mindspore=ms.__version__,
            data=self.corpus.digest,
            skipped=self.skipped,
            held=self.engine.held(),
            collectives=[(found.kind, found.size) for found in self.engine.traffic()],
            events=self.engine.recorder.events if self.scenario.layout.world_size > 1 else [],
            in_flight_memory=self.engine.in_flight_memory,
            optimizer_memory=self.engine.optimizer_memory,
            step_seconds=self.timer.step_seconds,
            data_seconds=self.data_seconds,
            curves=self.all_curves(),
            checkpoint_seconds=self.saver.seconds,
            checkpoint_evaluations=self.saver.evaluations,
            evaluation=self.full_evaluation(self.done) if self.evaluator else None,
            evaluations=self.evaluations,
            samplings=self.samplings,
            oracle_nll=self.corpus.oracle_nll,
            samples=self.samples(),
            load=load,
            host_memory=self.host_memory.values,
            operators=self.profiler.operators(),
            warnings=[*self.warnings, *self.alarms.given.values()],
            source=str(self.engine.source),
        )

    def _time_steps(self) -> None:
        """Says what steps took, and what of that the first took to be compiled."""
        seconds = self.timer.step_seconds
        compiling = max(0.0, seconds[0] - statistics.median(seconds[1:])) if len(seconds) > 1 else 0.0
        self.phases.add("compile", compiling)
        self.phases.add("train", sum(seconds) + sum(self.data_seconds) - compiling)
        self.phases.add("save", sum(self.saver.seconds))

    def samples(self) -> list[list[int]]:
        """Continuations of held-out prompts, the same on all ranks."""
        scenario = self.scenario
        if not scenario.samples:
            return []
        prompts = corpus.evenly_spaced(self.corpus.held_out, scenario.samples)
        _, set_train = self.evaluation
        set_train(False)
        with self.phases("sample"):
            written = self.writer.continuations(prompts, scenario.sample_tokens, scenario.seed, self.choose)
        set_train(True)
        return [[int(token) for token in row] for row in written]


def reason(error: Exception) -> str:
    """The line of MindSpore's message that says what happened."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    return (told or [line for line in lines if line] or [type(error).__name__])[0]


def build_model(scenario: Scenario) -> nn.Cell:
    """The scenario's decoder, or what the user's function returns.

    Raises:
        ScenarioError: the function can't be found or returns no Cell.
    """
    sizes = sizes_of(scenario.model)
    if sizes is None:
        model = user_function("model", scenario.model)(scenario)
        if not isinstance(model, nn.Cell):
            raise ScenarioError(f"model={scenario.model!r} returned {type(model).__name__}; return a mindspore.nn.Cell")
        return model
    model = Decoder(sizes, scenario.sequence, scenario.seed, scenario.precision)
    recompute(model, scenario.recompute)
    return model
