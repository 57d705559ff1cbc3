"""Saves a training after an update, and sets one up as it was."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor
from mindspore.train import Callback, RunContext

from harness.checkpoints.manifest import Manifest, RankPart
from harness.checkpoints.resume import check_data
from harness.checkpoints.state import RandomState, RankState
from harness.checkpoints.store import RanksMissing, Store
from harness.errors import CheckpointError, ResultsError
from harness.evaluation import Evaluation
from harness.trainer import arrays, random_state
from harness.trainer.parallel.explicit import Engine
from harness.trainer.step import loss_scale

if TYPE_CHECKING:
    from harness.trainer.loop import Training


class Saver(Callback):
    """Saves after the updates that the scenario names, and after one that raised an alarm."""

    def __init__(self, training: "Training", store: Store, last: int) -> None:
        """Takes a training.

        Args:
            training: to save.
            store: where.
            last: update that it ends with.
        """
        super().__init__()
        self.training, self.store, self.last = training, store, last
        self.seconds: list[float] = []
        self._remembered: tuple[RandomState, arrays.Arrays] | None = None
        self.evaluations: list[Evaluation] = []
        self._alarms = len(training.alarms.given)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Saves, where it is time."""
        training, step = self.training, run_context.original_args().cur_step_num
        self._remembered = None
        alarms, self._alarms = self._alarms, len(training.alarms.given)
        policy, evaluation = training.scenario.checkpoints, None
        if policy.is_due(step, self.last):
            # Not where it is only stopped on purpose: the curve is to be that of a training that was not.
            if training.evaluator and policy.is_due(step, training.scenario.steps):
                evaluation = training.full_evaluation(step)
                self.evaluations.append(evaluation)
            self.save(step, evaluation)
        elif self._alarms > alarms:
            self.save(step, None, alarmed=True)

    def remember(self) -> None:
        """Takes down what a step changes before its update: generators, and parameters that are not trained."""
        trained = {parameter.name for parameter in self._engine.parameters}
        untrained = [p for p in self._engine.model.get_parameters() if p.name not in trained]
        # Of a stage, the other stages' parameters are here too, and none of them changes.
        kept = {} if self._engine.forward else {p.name: p.asnumpy().copy() for p in untrained}
        self._remembered = random_state.capture(), kept

    def put_back(self) -> None:
        """Undoes what the step did to parameters that are not trained."""
        if self._remembered:
            for parameter in self._engine.model.get_parameters():
                if parameter.name in self._remembered[1]:
                    parameter.set_data(Tensor(self._remembered[1][parameter.name]))

    def goes_on(self) -> None:
        """Takes the alarms that were given before for known."""
        self._alarms = len(self.training.alarms.given)

    def save(self, step: int, evaluation: Evaluation | None, alarmed: bool = False) -> None:
        """Writes a checkpoint, and removes the superfluous ones.

        Raises:
            CheckpointError: it can't be written; those that are complete stay.
        """
        training, start = self.training, time.perf_counter()
        try:
            folder = self.store.begin(step)
            self.store.announce(folder, self.write(folder, step))
            if training.rank == 0:
                parts = self.store.announced(folder, training.scenario.layout.world_size)
                manifest = self._manifest(step, parts, evaluation, alarmed)
                self.complete(folder, manifest)
                self.prune(manifest)
        except RanksMissing as error:
            if not alarmed:
                raise
            training.warnings.append(f"{error}; they differ on whether there was an alarm at step {step}")
        except (OSError, ResultsError) as error:
            steps = self.store.steps()
            kept = f"the newest complete one is of step {steps[-1]}" if steps else "there is none yet"
            reason = error.strerror if isinstance(error, OSError) else str(error).partition(";")[0]
            raise CheckpointError(
                f"the checkpoint of step {step} can't be written: {reason}; {kept}; free the disk and resume"
            ) from None
        self.seconds.append(time.perf_counter() - start)

    def write(self, folder: Path, step: int) -> RankPart:
        """This rank's part."""
        training, engine = self.training, self._engine
        kind = training.scenario.checkpoints.format
        random, before = self._remembered or (random_state.capture(), {})
        held = {p.name: np.asarray(p.asnumpy(), order="C") for p in engine.saved()} | dict(before)
        state = RankState(
            curves=training.all_curves(),
            evaluations=training.evaluations,
            checkpoint_evaluations=self.evaluations,
            samplings=training.samplings,
            warnings=training.warnings,
            alarms=training.alarms.given,
            skipped=training.skipped,
            random=random,
        )
        part = self.store.add(
            folder,
            training.rank,
            lambda path: arrays.save(held, path, kind),
            kind,
            state.model_dump_json(),
        )
        part.shard, part.shards = engine.place.shard, training.scenario.layout.tp
        part.cut = {p.name: axis for p in engine.saved() if (axis := engine.axis(p)) is not None}
        return part

    def complete(self, folder: Path, manifest: Manifest) -> None:
        """Marks it complete."""
        self.store.complete(folder, manifest)

    def prune(self, written: Manifest) -> None:
        """Removes what is no longer kept."""
        try:
            self.store.prune(self.training.scenario.checkpoints, written)
        except OSError as error:
            self.training.warnings.append(f"old checkpoints can't be removed: {error.strerror}; free the disk")

    @property
    def _engine(self) -> Engine:
        assert isinstance(self.training.engine, Engine)
        return self.training.engine

    def _manifest(self, step: int, parts: Sequence[RankPart], evaluation: Evaluation | None, alarmed: bool) -> Manifest:
        training, scenario = self.training, self.training.scenario
        return Manifest(
            scenario=scenario.to_dict(),
            mindspore=ms.__version__,
            data=training.corpus.digest,
            windows=len(training.corpus.train),
            step=step,
            samples=training.samples_seen,
            learning_rate=training.curves.curves["learning_rate"][-1],
            loss_scale=loss_scale(scenario),
            reason="alarm" if alarmed else "cadence",
            evaluation=evaluation,
            ranks=list(parts),
        )


class Restored:
    """A training set up as a checkpoint left it. Its attributes are the seams at which a fault can be planted."""

    def __init__(self, training: "Training", store: Store, step: int) -> None:
        self.training, self.step = training, step
        self.folder = store.path(step)
        self.manifest = store.read(step)
        self.parameters: Callable[[Engine], list[Parameter]] = Engine.saved
        """What is set."""

        self.samples = self.manifest.samples
        """Rows that were trained on."""

        self.set_random: Callable[[RandomState], None] = random_state.restore

    def apply(self) -> None:
        """Sets everything.

        Raises:
            CheckpointError: it is not whole, or of another model.
        """
        training, manifest, engine = self.training, self.manifest, self.training.engine
        check_data(manifest, training.scenario, training.corpus.digest, len(training.corpus.train))
        assert isinstance(engine, Engine)
        mine = training.scenario.to_dict()
        same = all(manifest.scenario[name] == mine[name] for name in ("layout", "pipeline_schedule", "chunks"))
        part = manifest.ranks[training.rank if same else 0]
        if same:
            arrays.give(self.parameters(engine), arrays.load(self.folder / part.arrays.name), {})
        else:
            place = engine.place.shard, training.scenario.layout.tp
            cut = {p.name: (axis, *place) for p in engine.saved() if (axis := engine.axis(p)) is not None}
            arrays.give(self.parameters(engine), arrays.gathered(self.folder, manifest), cut)
        state = RankState.model_validate_json((self.folder / part.state.name).read_text(encoding="utf-8"))
        self.set_random(state.random)
        training.go_on(self.step, self.samples, state)
        if manifest.mindspore != ms.__version__:
            training.warnings.append(
                f"the checkpoint of step {self.step} was saved by MindSpore {manifest.mindspore}; this is "
                f"{ms.__version__}"
            )


def replay(training: "Training", state: RankState) -> None:
    """Shows alarms and guard the steps that were made, so that they know what is usual; what was given stays given."""
    curves = state.curves
    norms, rates = curves.get("grad_norm", []), curves.get("learning_rate", [])
    updates = curves.get("update_norm", [math.nan] * len(norms))
    for step, (norm, update, rate) in enumerate(zip(norms, updates, rates, strict=True), start=1):
        training.alarms.look(step, norm, None if step in state.skipped else update, rate, rate)
    training.alarms.given = dict(state.alarms)
    if training.sentry:
        for step, (loss, norm) in enumerate(zip(curves["loss"], norms, strict=True), start=1):
            training.sentry.watch.look(step, loss, norm)
