"""Pipeline parallelism: each rank holds some layers, and micro-batches travel from rank to rank.

A part keeps nothing of its forward but its input; backward computes the rest again. A rank's activations in flight are
therefore one input a micro-batch, as with full recomputation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from harness.models import ModelConfig
from harness.scenario import Scenario
from harness.schedule import Action, Kind, Schedule, program
from harness.trainer.device import wait
from harness.trainer.graph_cache import Graph
from harness.trainer.loss import LossSums, inputs_of
from harness.trainer.model import Decoder
from harness.trainer.parallel.messages import Messages
from harness.trainer.parallel.traffic import Collective
from harness.trainer.recorder import Recorder


class Part(Graph):
    """Some consecutive blocks, the embedding before the first and the loss behind the last."""

    def __init__(self, model: Decoder, number: int, parts: int, entropy: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.is_first, self.is_last = number == 0, number == parts - 1
        size = len(model.blocks) // parts
        self.blocks = nn.CellList(list(model.blocks)[number * size : (number + 1) * size], auto_prefix=False)
        if self.is_first:
            self.embedding = model.embedding
        if self.is_last:
            self.norm = model.norm
            self.head = model.head
            self.sums = LossSums(entropy)

    def construct(self, x: Tensor, windows: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """One micro-batch.

        Args:
            x: (rows, sequence, width) from the part before; the first does not look at it.
            windows: (rows, sequence + 1); the first reads inputs from it, the last targets.

        Returns:
            (rows, sequence, width); of the last part, the loss sum and the token count.
        """
        x = self.features(x, windows)
        if self.is_last:
            return self.sums(self.head(self.norm(x)), windows)
        return x

    def features(self, x: Tensor, windows: Tensor) -> Tensor:
        """The residual stream behind the part's blocks."""
        if self.is_first:
            x = self.embedding(inputs_of(windows))
        for block in self.blocks:
            x = block(x)
        return x


class Backward(Graph):
    """Gradients of a part for its input, its weights, or both; adds those for the weights to what it is given."""

    def __init__(self, part: Part, scale: float, for_input: bool, for_weights: bool) -> None:
        super().__init__(auto_prefix=False)
        self.part = part
        self.scale = scale
        self.for_input, self.for_weights = for_input and not part.is_first, for_weights
        self.weights = ms.ParameterTuple(part.trainable_params())

    def scalar(self, x: Tensor, windows: Tensor, dy: Tensor) -> Tensor:
        """What has the gradient asked for: the scaled loss, or the output weighed by the gradient that came back."""
        if self.part.is_last:
            nll, _ = self.part(x, windows)
            return nll * self.scale
        return ops.reduce_sum(self.part(x, windows) * dy)

    def construct(self, x: Tensor, windows: Tensor, dy: Tensor, *sums: Tensor) -> tuple[Tensor, ...]:
        """Gradient for the input, if asked for, then the sums with this micro-batch's gradients, if asked for."""
        if not self.for_weights:
            return (ms.grad(self.scalar, 0)(x, windows, dy),)
        if self.for_input:
            dx, found = ms.grad(self.scalar, 0, self.weights)(x, windows, dy)
            return (dx, *[sums[i] + found[i] for i in range(len(self.weights))])
        found = ms.grad(self.scalar, None, self.weights)(x, windows, dy)
        return tuple([sums[i] + found[i] for i in range(len(self.weights))])


TURNS_ALONE = 6
"""How often each stage's turn comes to work while the others rest."""

TIMES_A_TURN = 3
"""How often a stage does each kind of action in a turn."""


@dataclass(frozen=True)
class Stage:
    """What a rank holds of a pipeline, and where the others are."""

    parts: Sequence[Part]
    """Its own, chunk by chunk."""

    schedule: Schedule
    number: int
    rank_of: Callable[[int], int]
    """Another stage's number → the rank that messages go to."""

    def set_train(self, mode: bool = True) -> None:
        """As a Cell's."""
        for part in self.parts:
            part.set_train(mode)


class PipelineGradients:
    """Runs one part of the batch through the pipeline: what ``Gradients`` is without one."""

    def __init__(self, stage: Stage, scale: float, messages: Messages, recorder: Recorder) -> None:
        """Builds the graphs of a stage.

        Args:
            stage: this rank's.
            scale: factor of the loss that is differentiated.
            messages: between the stages.
            recorder: told of each action.
        """
        self.stage, self.messages, self.recorder = stage, messages, recorder
        self.schedule = stage.schedule
        self.program = program(stage.schedule)[stage.number]
        self.set_train = stage.set_train
        split = stage.schedule.splits_backward
        self.backward = [Backward(part, scale, True, not split) for part in stage.parts]
        self.weights = [Backward(part, scale, False, True) for part in stage.parts] if split else []
        self.parameters = _parameters(stage.parts)
        self.nothing = Tensor(np.zeros(messages.shape, np.float32))
        self.no_gradients = [Tensor(np.zeros(p.shape, np.float32)) for p in self.parameters]
        self.in_flight = 0
        """Most bytes of inputs that were held at once."""

    def __call__(self, windows: Tensor) -> tuple[Tensor, ...]:
        """Loss sum and token count (zero but on the last stage), then one gradient for each parameter of this rank."""
        count = self.schedule.micro_batches
        flush = _Flush(self, windows.chunk(count) if count > 1 else [windows])
        for instruction in self.program:
            action = instruction.action
            if instruction.operation == "compute":
                with self.recorder.span("compute", str(action)):
                    flush.compute(action)
            elif instruction.operation == "send":
                self.messages.send(flush.outputs.pop(action), self.stage.rank_of(instruction.peer), str(action))
            else:
                arrived = self.messages.receive(self.stage.rank_of(instruction.peer), str(action))
                flush.take(action, arrived, instruction.peer)
        self.messages.flush()
        self.in_flight = max(self.in_flight, flush.in_flight)
        sums = (flush.sums[name] for name in (p.name for p in self.parameters))
        return (Tensor(np.float32(flush.nll)), Tensor(np.float32(flush.tokens)), *sums)

    def work_alone(self, windows: Tensor) -> None:
        """Does every kind of action some times over, and keeps nothing of it but the time.

        Args:
            windows: of one micro-batch.
        """
        kinds: tuple[Kind, ...] = ("F", "B", "W") if self.schedule.splits_backward else ("F", "B")
        for _ in range(TIMES_A_TURN):
            flush = _Flush(self, [windows])
            for action in (Action(kind, 0, chunk) for chunk in range(self.schedule.chunks) for kind in kinds):
                with self.recorder.span("alone", str(action)):
                    flush.compute(action)

    def traffic(self) -> list[Collective]:
        """The messages that this stage sends for one part of the batch."""
        return [Collective("Send", self.messages.size) for each in self.program if each.operation == "send"]


class _Flush:
    """One filling and draining of the pipeline, as a stage sees it."""

    def __init__(self, owner: PipelineGradients, windows: Sequence[Tensor]) -> None:
        self.owner, self.windows, self.schedule = owner, windows, owner.schedule
        self.inputs: dict[Action, Tensor] = {}
        """Forward action → what its part was given, until its backward is done."""

        self.gradients: dict[Action, Tensor] = {}
        """Backward action → the gradient that came back."""

        self.outputs: dict[Action, Tensor] = {}
        """What was computed and not sent yet."""

        self.sums = {p.name: zero for p, zero in zip(owner.parameters, owner.no_gradients, strict=True)}
        self.nll = np.float32(0)
        self.tokens = np.float32(0)
        self.in_flight = 0

    def take(self, action: Action, tensor: Tensor, sender: int) -> None:
        """Puts a message where the action that needs it will look."""
        part = self.schedule.part(sender, action.chunk) + (1 if action.kind == "F" else -1)
        chunk = self.schedule.place(part)[1]
        target = self.inputs if action.kind == "F" else self.gradients
        target[Action(action.kind, action.micro_batch, chunk)] = tensor

    def compute(self, action: Action) -> None:
        """Does one action, and returns when it is done."""
        owner, chunk, windows = self.owner, action.chunk, self.windows[action.micro_batch]
        forward, backward = Action("F", action.micro_batch, chunk), Action("B", action.micro_batch, chunk)
        x = self.inputs.setdefault(forward, owner.nothing)
        if action.kind == "F":
            self._forward(action, owner.stage.parts[chunk], x, windows)
        else:
            dy = self.gradients.get(backward, owner.nothing)
            cell = owner.weights[chunk] if action.kind == "W" else owner.backward[chunk]
            self._backward(action, cell, x, windows, dy)
            if action.kind == "W" or not self.schedule.splits_backward:
                del self.inputs[forward]
                self.gradients.pop(backward, None)
        wait()

    def _forward(self, action: Action, part: Part, x: Tensor, windows: Tensor) -> None:
        self.in_flight = max(self.in_flight, sum(t.nbytes for t in self.inputs.values() if t is not self.owner.nothing))
        result = part(x, windows)
        if part.is_last:
            self.nll += result[0].asnumpy()
            self.tokens += result[1].asnumpy()
        else:
            self.outputs[action] = result

    def _backward(self, action: Action, cell: Backward, x: Tensor, windows: Tensor, dy: Tensor) -> None:
        if not (cell.for_input or cell.for_weights):
            return
        names = [weight.name for weight in cell.weights]
        sums = [self.sums[name] for name in names] if cell.for_weights else []
        found = list(cell(x, windows, dy, *sums))
        if cell.for_input:
            self.outputs[action] = found.pop(0)
        self.sums.update(zip(names, found, strict=False))


class TiedEnds(Graph):
    """Adds the gradients of a tied embedding that stands on the first and on the last stage."""

    def __init__(self, index: int, size: int, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.index = index
        self.size = size
        self.all_reduce = ops.AllReduce(ops.ReduceOp.SUM, group)

    def construct(self, *sums: Tensor) -> tuple[Tensor, ...]:
        """Sums of a rank, with the embedding's gradient that of both ends."""
        return tuple([self.all_reduce(sums[i]) if i == self.index else sums[i] for i in range(len(sums))])

    def traffic(self) -> list[Collective]:
        """One AllReduce of the embedding."""
        return [Collective("AllReduce", 4 * self.size)]


def _parameters(parts: Sequence[Part]) -> list[ms.Parameter]:
    """Of all parts, each once."""
    return list({p.name: p for part in parts for p in part.trainable_params()}.values())


def cut(model: Decoder, schedule: Schedule, stage: int, entropy: nn.Cell) -> list[Part]:
    """This rank's parts of a model, chunk by chunk."""
    return [Part(model, schedule.part(stage, chunk), schedule.parts, entropy) for chunk in range(schedule.chunks)]


def message_shape(scenario: Scenario, config: ModelConfig) -> tuple[int, int, int]:
    """What stages send each other: (rows of a micro-batch, sequence, width)."""
    return scenario.micro_batch_rows, scenario.sequence, config.width
