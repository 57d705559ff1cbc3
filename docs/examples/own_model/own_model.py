"""A language model of one's own: a gated recurrent layer over bytes."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from harness import Scenario

WIDTH = 48


class Recurrent(nn.Cell):
    """Tokens to logits."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        # Drawn from the scenario's seed: the same scenario gives the same numbers.
        random = np.random.default_rng(seed)

        def drawn(*shape: int) -> Tensor:
            return Tensor((random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

        self.embedding = Parameter(drawn(256, WIDTH), name="embedding")
        self.gates = Parameter(drawn(2 * WIDTH, 2 * WIDTH), name="gates")
        self.candidate = Parameter(drawn(2 * WIDTH, WIDTH), name="candidate")
        self.head = Parameter(drawn(WIDTH, 256), name="head")

    def construct(self, tokens: Tensor) -> Tensor:
        """(batch, sequence) int32 → (batch, sequence, 256) float32."""
        inputs = ops.gather(self.embedding, tokens, 0)
        state = ops.zeros((tokens.shape[0], WIDTH), ms.float32)
        states = []
        for step in range(tokens.shape[1]):
            both = ops.concat((inputs[:, step], state), 1)
            gates = ops.sigmoid(ops.matmul(both, self.gates))
            update, reset = gates[:, :WIDTH], gates[:, WIDTH:]
            new = ops.tanh(ops.matmul(ops.concat((inputs[:, step], reset * state), 1), self.candidate))
            state = update * state + (1 - update) * new
            states.append(state)
        return ops.matmul(ops.stack(states, 1), self.head)


def model(scenario: Scenario) -> nn.Cell:
    """What ``model="own_model:model"`` names: it is called with the scenario, in each rank's process."""
    return Recurrent(scenario.seed)
