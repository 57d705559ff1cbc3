"""The training loop of one rank: builds what the scenario names, trains, evaluates, samples, and reports."""

import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path

import mindspore as ms
from mindspore import Tensor, nn
from mindspore.train import Callback

from harness import corpus
from harness.errors import ScenarioError
from harness.launch.request import PROGRESS
from harness.metrics.text import perplexity
from harness.models import PRESETS
from harness.run import Load, RankReport
from harness.scenario import Scenario
from harness.trainer.data import batches
from harness.trainer.evaluate import Evaluator
from harness.trainer.generate import Choose, continuations, sample_token
from harness.trainer.load import LoadMeter
from harness.trainer.model import Decoder, recompute
from harness.trainer.monitors import CurveMonitor, Monitors, PerplexityMonitor, ProgressMonitor, StepTimer
from harness.trainer.parallel.data import share
from harness.trainer.parallel.sharding import ShardedAdamW
from harness.trainer.resolve import user_function
from harness.trainer.step import TrainStep, learning_rate


class Training:
    """One rank's training. Its attributes are the seams at which a fault can be planted."""

    def __init__(self, scenario: Scenario, rank: int, root: Path, folder: Path) -> None:
        self.scenario = scenario
        self.rank = rank
        self.corpus = corpus.load(scenario, root)
        self.model = build_model(scenario)
        self.step = TrainStep(self.model, scenario, self._sharded_optimizer())
        self.traffic = self.step.traffic()
        self.rate: Callable[[int], float] = lambda step: learning_rate(scenario, step)
        self.choose: Choose = sample_token
        self.curves = CurveMonitor()
        self.timer = StepTimer()
        self.callbacks: list[Callback] = [self.curves, self.timer]
        self.held: list[Tensor] = []
        if rank == 0:
            self.callbacks.append(ProgressMonitor(folder / PROGRESS))
        # Every rank evaluates, so that none waits inside a timed step for one that does.
        self.evaluator = self._evaluator() if scenario.eval_sequences else None
        self.perplexities: list[float] = []
        if scenario.eval_every and self.evaluator:
            evaluator = self.evaluator
            monitor = PerplexityMonitor(lambda: perplexity(*evaluator()), scenario.eval_every)
            self.perplexities = monitor.curve
            self.callbacks.append(monitor)

    def _sharded_optimizer(self) -> ShardedAdamW | None:
        layout = self.scenario.layout
        if not layout.optimizer_sharding:
            return None
        parameters = ms.ParameterTuple(self.model.trainable_params())
        return ShardedAdamW(parameters, self.scenario.weight_decay, layout.dp, layout.position(self.rank)[1])

    def _evaluator(self) -> Evaluator:
        held_out = corpus.evenly_spaced(self.corpus.held_out, self.scenario.eval_sequences)
        return Evaluator(self.model, held_out, rows=min(16, len(held_out)))

    def run(self) -> RankReport:
        """Trains to the end."""
        scenario = self.scenario
        order = corpus.sample_order(len(self.corpus.train), scenario.batch, scenario.steps, scenario.seed)
        replica = scenario.layout.position(self.rank)[1]
        own = share(order.T, scenario.layout.dp, replica).T
        dataset = batches(scenario, self.corpus.train, own)
        meter = LoadMeter()
        monitors = Monitors(self.callbacks, scenario.steps)
        for step, (windows,) in enumerate(dataset.create_tuple_iterator(num_epochs=1), start=1):
            monitors.begin_step(step)
            rate = self.rate(step)
            monitors.end_step((*self.step(windows, rate, step), rate))
        return self.report(meter.load())

    def report(self, load: Load | None) -> RankReport:
        """What this rank measured, evaluated and wrote."""
        curves = dict(self.curves.curves)
        if self.perplexities:
            curves["perplexity_curve"] = self.perplexities
        nll, tokens = self.evaluator() if self.evaluator else (None, 0)
        parameters = self.model.trainable_params()
        return RankReport(
            rank=self.rank,
            scenario_hash=self.scenario.hash,
            mindspore=ms.__version__,
            data=self.corpus.digest,
            parameters=sum(parameter.size for parameter in parameters),
            parameter_digest=digest(parameters),
            collectives=[(found.kind, found.size) for found in self.traffic],
            optimizer_memory=sum(state.nbytes for state in self.step.update.optimizer.states()) / 2**20,
            step_seconds=self.timer.step_seconds,
            curves=curves,
            nll_sum=nll,
            nll_tokens=tokens,
            oracle_nll=self.corpus.oracle_nll,
            samples=self.samples(),
            load=load,
            source=str(Path(inspect.getfile(type(self.model))).resolve()),
        )

    def samples(self) -> list[list[int]]:
        """Sampled continuations of held-out prompts, on rank 0."""
        scenario = self.scenario
        if self.rank or not scenario.samples:
            return []
        prompts = corpus.evenly_spaced(self.corpus.held_out, scenario.samples)
        written = continuations(self.model, prompts, scenario.sample_tokens, scenario.seed, self.choose)
        return [[int(token) for token in row] for row in written]


def build_model(scenario: Scenario) -> nn.Cell:
    """The scenario's decoder, or what the user's function returns.

    Raises:
        ScenarioError: the function can't be found or returns no Cell.
    """
    if scenario.model not in PRESETS:
        model = user_function("model", scenario.model)(scenario)
        if not isinstance(model, nn.Cell):
            raise ScenarioError(f"model={scenario.model!r} returned {type(model).__name__}; return a mindspore.nn.Cell")
        return model
    model = Decoder(PRESETS[scenario.model], scenario.sequence, scenario.seed, scenario.precision)
    recompute(model, scenario.recompute)
    return model


def digest(parameters: list[ms.Parameter]) -> str:
    """Hash of names and bytes, the same on all replicas that hold the same values."""
    state = hashlib.sha256()
    for parameter in parameters:
        state.update(parameter.name.encode())
        state.update(parameter.asnumpy().tobytes())
    return state.hexdigest()[:16]
