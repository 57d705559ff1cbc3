"""Data and a training step of one's own, for a model that is not."""

from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size

from harness import Scenario

SMOOTHING = 0.1
"""Share of the target that is spread over all tokens: what this step does and the harness's does not."""


def data(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """What ``data="own_step:data"`` names: rows that count on, modulo 64, from a random start by a random stride.

    An epoch is a whole number of batches, so that none is filled up with rows of −1, which weigh nothing: this step
    takes means over its rows, and replicas that got such rows alone would have none to take.
    """
    random = np.random.default_rng(scenario.seed)
    start, stride = random.integers(0, 64, (2, 384, 1))
    rows = (start + stride * np.arange(scenario.sequence + 1)) % 64
    return rows[:352].astype(np.int32), rows[352:].astype(np.int32)


def step(model: nn.Cell, scenario: Scenario) -> Callable[[Tensor, float, int], tuple[Tensor, Tensor]]:
    """What ``step="own_step:step"`` names: it is called once in each rank's process, and what it returns each step."""
    replicas = scenario.layout.dp
    reduce = ops.AllReduce() if replicas > 1 else None
    assert reduce is None or get_group_size() == replicas
    weights = ms.ParameterTuple(model.trainable_params())
    optimizer = nn.Momentum(weights, learning_rate=scenario.learning_rate, momentum=0.9)

    def smoothed(windows: Tensor) -> Tensor:
        logits = model(windows[:, :-1])
        targets = windows[:, 1:].reshape(-1)
        return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets, label_smoothing=SMOOTHING)

    differentiate = ms.value_and_grad(smoothed, None, weights)

    def train(windows: Tensor, rate: float, number: int) -> tuple[Tensor, Tensor]:
        loss, gradients = differentiate(windows)
        if reduce:
            loss = reduce(loss.reshape(1))[0] / replicas
            gradients = tuple(reduce(gradient) / replicas for gradient in gradients)
        ops.assign(optimizer.learning_rate, Tensor(rate, ms.float32))
        optimizer(gradients)
        norm = ops.sqrt(sum(ops.reduce_sum(gradient * gradient) for gradient in gradients))
        return loss, norm

    return train
