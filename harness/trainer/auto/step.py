"""One training step as one graph for MindSpore's AutoParallel."""

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.ops.function.clip_func import get_square_sum

from harness.scenario import Scenario
from harness.trainer import optimizer
from harness.trainer.optimizer import adamw, decays_of, hyper_map


class AdamW(optimizer.AdamW):
    """The same update without its norm, for which the compiler would have to keep copies and add up over ranks."""

    def construct(self, rate: Tensor, step: Tensor, scale: Tensor, gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Updates every parameter in place; arguments as in the plain one."""
        update = ops.partial(adamw, self.corrected(rate, step), scale)
        done: tuple[Tensor, ...] = hyper_map(update, self.parameters, self.first, self.second, self.decays, gradients)
        return done


class GraphStep(nn.Cell):
    """Loss, gradients, global norm, clipping and update of a whole batch, however many micro-batches it has."""

    def __init__(self, loss: nn.Cell, parameters: ms.ParameterTuple, scenario: Scenario, micro_batches: int) -> None:
        """Puts the step together.

        Args:
            loss: of the batch, wrapped so that it is computed in micro-batches.
            parameters: that are trained.
            scenario: gives decay, clipping and sharding.
            micro_batches: in which gradients are accumulated.
        """
        super().__init__(auto_prefix=False)
        self.loss = loss
        self.parameters = parameters
        self.optimizer = AdamW(parameters, decays_of(parameters, scenario.weight_decay))
        self.gradients = ops.GradOperation(get_by_list=True)
        self.clip_norm = scenario.clip_norm
        # A second input beside the batch keeps the compiler from cutting a pipeline, so these are parameters.
        self.rate = Parameter(Tensor(0.0, ms.float32), name="rate", requires_grad=False)
        self.number = Parameter(Tensor(1.0, ms.float32), name="number", requires_grad=False)
        self.weight = Parameter(Tensor(1.0, ms.float32), name="weight_of_tokens", requires_grad=False)
        self.accumulates = micro_batches > 1
        self.is_sharded = scenario.layout.optimizer_sharding
        if self.accumulates:
            # By this prefix the compiler knows where it is to add up the micro-batches' gradients.
            self.sums = parameters.clone(prefix="accu_grads", init="zeros")

    def set_position(self, rate: float, number: int, weight: float) -> None:
        """States what the next update needs beside its batch.

        Args:
            rate: the learning rate.
            number: of the update, from 1.
            weight: tokens of a whole batch over those that count in this one; makes means of the loss's sums.
        """
        self.weight.set_data(Tensor(weight, ms.float32))
        self.rate.set_data(Tensor(rate, ms.float32))
        self.number.set_data(Tensor(number, ms.float32))

    def construct(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """(rows, sequence + 1) windows of the global batch → loss, gradient norm."""
        loss = self.loss(windows)
        gradients = self.gradients(self.loss, self.parameters)(windows)
        sums = gradients
        if self.accumulates:
            sums = ops.depend(self.sums, gradients)
            if not self.is_sharded:
                gradients = sums
        # Of this very function the compiler knows that sums of squares are to be added up over ranks.
        norm = ops.sqrt(ops.addn(hyper_map(get_square_sum, gradients))) * self.weight
        factor = self.weight * 1.0
        if self.clip_norm is not None:
            factor = factor * ops.minimum(self.clip_norm / (norm + 1e-6), 1.0)
        loss = ops.depend(loss, self.optimizer(self.rate, self.number, factor, gradients))
        if self.accumulates:
            loss = ops.depend(loss, hyper_map(clear, sums, gradients))
        return loss * self.weight, norm


clear = ops.MultitypeFuncGraph("clear")


@clear.register("Tensor", "Tensor")  # type: ignore[untyped-decorator]
def _clear(accumulated: Tensor, gradient: Tensor) -> Tensor:
    """Sets an accumulator to zero once its gradient was used; multiplied by zero, a NaN would stay for ever."""
    accumulated = ops.depend(accumulated, gradient)
    return ops.assign(accumulated, ops.zeros_like(accumulated))
