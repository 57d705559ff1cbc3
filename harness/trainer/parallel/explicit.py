"""The explicit engine: puts a rank's share of a model together from the kinds of parallelism of its layout."""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Parameter, Tensor, nn
from mindspore.communication import GlobalComm

from harness.metrics.sketch import sketch
from harness.run import Held
from harness.scenario import Scenario
from harness.schedule import schedule_of
from harness.trainer.cache import CachedDecoder, Memory
from harness.trainer.evaluate import Score, Scored, Scores
from harness.trainer.generate import NextLogits
from harness.trainer.loss import CrossEntropy, TokenLoss
from harness.trainer.model import Decoder, recomputed_blocks
from harness.trainer.monitors import OUTPUTS
from harness.trainer.optimizer import SGD, AdamW, decays_of, subject
from harness.trainer.parallel import pipeline, tensor
from harness.trainer.parallel.data import Reduce
from harness.trainer.parallel.forward import Forward, LastLogits, LastScores, Layers
from harness.trainer.parallel.groups import Groups
from harness.trainer.parallel.messages import Messages
from harness.trainer.parallel.norm import Agree, contributions
from harness.trainer.parallel.sharding import ShardedAdamW
from harness.trainer.parallel.traffic import Collective
from harness.trainer.recorder import Recorder
from harness.trainer.step import ComputesGradients, Gradients, RecordedGradients, TrainStep, Update, loss_scale


@dataclass(frozen=True)
class Place:
    """Where a rank stands."""

    stage: int
    replica: int
    shard: int
    groups: Groups

    @classmethod
    def of(cls, scenario: Scenario, rank: int, groups: Groups) -> "Place":
        """The place of a rank in a scenario's layout."""
        return cls(*scenario.layout.position(rank), groups)


class Engine:
    """A rank's share of the training of a scenario."""

    outputs: Sequence[str] = OUTPUTS
    """What a step returns, the rate added by the loop."""

    def __init__(self, model: nn.Cell, scenario: Scenario, place: Place) -> None:
        """Spreads and cuts the model, and builds the step.

        Args:
            model: the whole model; changed in place.
            scenario: what to train.
            place: this rank's.
        """
        self.scenario, self.place = scenario, place
        layout, groups = scenario.layout, place.groups
        self.recorder = Recorder()
        spread = layout.tp, place.shard, groups.tensor
        self.cut = tensor.spread(model, *spread) if layout.tp > 1 else {}
        self.entropy = tensor.VocabularyCrossEntropy(*spread) if layout.tp > 1 else CrossEntropy()
        self.model = model
        self.loss = TokenLoss(model, self.entropy)
        self.parts: list[pipeline.Part] = []
        self.forward: Forward | None = None
        self.voice = 1.0 if place.shard == 0 else 0.0
        self.build()

    def build(self) -> None:
        """Builds the step."""
        scenario = self.scenario
        self.gradients: ComputesGradients
        scale = loss_scale(scenario)
        if scenario.layout.pp > 1:
            self.gradients = self._pipeline(scale)
            self.parameters = self.gradients.parameters
        else:
            self.gradients = RecordedGradients(Gradients(self.loss, scale), self.recorder)
            self.parameters = self.model.trainable_params()
        self.step = TrainStep(
            self.gradients, self._reductions(), self._update(scale), scenario.accumulation, self.recorder
        )

    def _pipeline(self, scale: float) -> pipeline.PipelineGradients:
        scenario, place, config = self.scenario, self.place, self.model.config
        schedule = schedule_of(scenario)
        self.parts = pipeline.cut(self.model, schedule, place.stage, self.entropy)
        stage = pipeline.Stage(
            self.parts, schedule, place.stage, lambda other: scenario.layout.rank(other, place.replica, place.shard)
        )
        self.forward = Forward(stage, config.width, Agree(place.groups.model), self.voice)
        messages = Messages(pipeline.message_shape(scenario, config), self.recorder)
        return pipeline.PipelineGradients(stage, scale, messages, self.recorder)

    @property
    def _tied(self) -> list[str]:
        """Name of the embedding where both ends of a pipeline hold it."""
        config = getattr(self.model, "config", None)
        is_tied = self.scenario.layout.pp > 1 and config is not None and config.tied
        return [self.model.embedding.weight.name] if is_tied else []

    def _reductions(self) -> list[nn.Cell]:
        found: list[nn.Cell] = []
        weights = ms.ParameterTuple(self.parameters)
        if self.scenario.layout.dp > 1:
            found.append(Reduce(weights, self.place.groups.data, self.scenario.fused_reduction))
        for index, weight in enumerate(weights):
            if weight.name in self._tied:
                found.append(pipeline.TiedEnds(index + 2, weight.size, self.place.groups.ends))
        return found

    def _update(self, scale: float) -> Update:
        scenario, place, layout = self.scenario, self.place, self.scenario.layout
        weights = ms.ParameterTuple(self.parameters)
        elsewhere = self._tied if place.stage > 0 else []
        shares = contributions(self.parameters, self.cut, layout.tp, elsewhere)
        optimizer: nn.Cell
        if layout.optimizer_sharding:
            optimizer = ShardedAdamW(
                weights, scenario.weight_decay, layout.dp, place.replica, place.groups.data, shares
            )
        else:
            plain = {"adamw": AdamW, "sgd": SGD}[scenario.optimizer]
            optimizer = plain(weights, decays_of(weights, scenario.weight_decay), shares)
        agree = Agree(place.groups.model) if place.groups.model else None
        return Update(optimizer, agree, scenario.clip_norm, scale, shares, self.voice)

    def evaluation(self) -> tuple[Score, Callable[[bool], object]]:
        """Scores (rows, sequence + 1) windows, the same on all ranks; and a switch to training and back."""
        scores = Scores(self.entropy, self._gather())
        if not self.forward:
            return Scored(self.model, scores), self.model.set_train
        forward, last = self.forward, LastScores(self.parts[-1], scores)
        return lambda windows: forward.output(windows, last, (3,)), forward.set_train

    def next_logits(self) -> Callable[[Tensor, Tensor], Tensor]:
        """(rows, sequence) tokens and a position → (rows, vocabulary) logits behind it, the same on all ranks."""
        gather = self._gather()
        if not self.forward:
            cell = NextLogits(self.model, gather)
            cell.set_train(False)
            return cell
        forward, part = self.forward, self.parts[-1]
        last = LastLogits(part, gather)
        vocabulary = self.model.config.vocabulary

        def compute(tokens: Tensor, position: Tensor) -> Tensor:
            windows = Tensor(np.pad(tokens.asnumpy(), ((0, 0), (0, 1))))
            forward.set_train(False)
            return forward.output(windows, lambda x, rows: last(x, rows, position), (len(windows), vocabulary))

        return compute

    def memory(self, rows: int) -> Memory | None:
        """Decodes rows with their keys and values kept; None where the model is cut into stages, or is the user's."""
        if self.forward or not isinstance(self.model, Decoder):
            return None
        return Memory(CachedDecoder(self.model, rows, self._gather()))

    def _gather(self) -> nn.Cell | None:
        place, tp = self.place, self.scenario.layout.tp
        return tensor.GatherVocabulary(tp, place.shard, place.groups.tensor) if tp > 1 else None

    def work_alone(self, windows: Tensor) -> None:
        """Has one stage after the other do its work while the others rest, to know how long it takes.

        Turns come round several times, so that what disturbs the machine for a while disturbs all alike.

        Args:
            windows: (rows, sequence + 1) of this rank's share of a batch.
        """
        if not isinstance(self.gradients, pipeline.PipelineGradients):
            return
        layout, nothing = self.scenario.layout, Tensor(np.zeros(1, np.float32))
        everybody = Agree(GlobalComm.WORLD_COMM_GROUP)
        places = [(stage, replica) for stage in range(layout.pp) for replica in range(layout.dp)]
        for place in places * pipeline.TURNS_ALONE:
            everybody(nothing).asnumpy()
            if place == (self.place.stage, self.place.replica):
                self.gradients.work_alone(windows[: self.scenario.micro_batch_rows])
        everybody(nothing).asnumpy()

    def traffic(self) -> list[Collective]:
        """What this rank sends in a step."""
        scenario, found = self.scenario, self.step.traffic()
        if isinstance(self.gradients, pipeline.PipelineGradients):
            found += self.gradients.traffic() * scenario.accumulation
        if scenario.layout.tp > 1:
            tokens = scenario.micro_batch_rows * scenario.sequence
            for part in self.parts or [self.loss]:
                found += tensor.traffic(part, tokens, self.model.config.width, self._passes(part))
        return found

    def _passes(self, part: nn.Cell) -> tensor.Passes:
        scenario = self.scenario
        count = scenario.accumulation * scenario.micro_batches
        blocks = {id(block) for block in recomputed_blocks(self.model, scenario.recompute)}
        if not isinstance(part, pipeline.Part):
            return tensor.Passes(forward=count, backward=count, recomputed=len(blocks))
        splits = schedule_of(scenario).splits_backward and not part.is_first
        backwards = count * (2 if splits else 1)
        return tensor.Passes(
            forward=count,
            backward=backwards,
            again=backwards,
            compiled=scenario.mode == "graph",
            recomputed=sum(id(block) in blocks for block in part.blocks),
        )

    def activations(self, windows: Tensor) -> dict[str, npt.NDArray[np.float32]]:
        """(rows, sequence, width) behind each of this rank's layers; nothing of a model of the user's.

        Args:
            windows: (rows, sequence + 1) of this rank.
        """
        if not isinstance(self.model, Decoder):
            return {}
        numbers = {id(block): number for number, block in enumerate(self.model.blocks)}
        names = []
        for layers in self._layers:
            names += ["embedding"] * (layers.embedding is not None)
            names += [f"blocks.{numbers[id(block)]}" for block in layers.blocks]
        found = self.forward.activations(windows, self._layers) if self.forward else self._layers[0](windows, windows)
        return {name: values.asnumpy() for name, values in zip(names, found, strict=True)}

    @cached_property
    def _layers(self) -> list[Layers]:
        """Of each of this rank's parts; compiled once."""
        parts = [Layers(part.embedding if part.is_first else None, part.blocks) for part in self.parts]
        return parts or [Layers(self.model.embedding, self.model.blocks)]

    def saved(self) -> list[Parameter]:
        """What a checkpoint holds of this rank: its parameters, trained or not, and what the optimizer remembers."""
        # All of them: a norm's running mean is none of those that are trained. A stage has none but those.
        own = list(self.parameters) if self.forward else list(self.model.get_parameters())
        return [*own, *self.step.update.optimizer.states()]

    def axis(self, parameter: Parameter) -> int | None:
        """Axis that a parameter, or a moment of one, is cut along; None where this rank has all of it."""
        return self.cut.get(subject(parameter.name))

    def held(self) -> list[Held]:
        """This rank's parameters, or shards of them, as they are now."""
        shards, shard = self.scenario.layout.tp, self.place.shard
        return [_held(p, self.cut.get(p.name), shard, shards) for p in self.parameters]

    @property
    def tokens_seen(self) -> int:
        """Tokens that counted in all steps so far, over all ranks."""
        return self.step.tokens_seen

    @property
    def optimizer_memory(self) -> float | None:
        """MiB of optimizer states that this rank keeps; None where the optimizer is the user's."""
        return float(sum(state.nbytes for state in self.step.update.optimizer.states())) / 2**20

    @property
    def source(self) -> Path:
        """File that the model's class is defined in."""
        return Path(inspect.getfile(type(self.model))).resolve()

    @property
    def in_flight_memory(self) -> float | None:
        """MiB of inputs held at once; None without a pipeline."""
        return self.gradients.in_flight / 2**20 if isinstance(self.gradients, pipeline.PipelineGradients) else None


def _held(parameter: Parameter, axis: int | None, shard: int, shards: int) -> Held:
    values = parameter.asnumpy()
    place = (0, 0, 1) if axis is None else (axis, shard, shards)
    return Held(
        name=parameter.name,
        shard=place[1],
        shards=place[2],
        size=parameter.size,
        digest=hashlib.sha256(values.tobytes()).hexdigest()[:16],
        squares=float(np.square(values, dtype=np.float64).sum()),
        sketch=sketch(parameter.name, values, *place),
    )
