"""A training loop of one's own, which knows nothing of the harness: it prints a JSON object a step."""

import argparse
import json
import os
import time

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init

WIDTH, SEQUENCE, BATCH = 32, 32, 16
TEXT = np.frombuffer((__doc__ * 40).encode(), np.uint8).astype(np.int32)


class Bigram(nn.Cell):
    """Tokens to the logits of the next ones."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(1)
        self.embedding = Parameter(Tensor(random.normal(0, 0.1, (256, WIDTH)).astype(np.float32)), name="embedding")
        self.head = Parameter(Tensor(random.normal(0, 0.1, (WIDTH, 256)).astype(np.float32)), name="head")

    def construct(self, tokens: Tensor) -> Tensor:
        """(tokens) int32 → (tokens, 256) float32."""
        return ops.matmul(ops.gather(self.embedding, tokens, 0), self.head)


def batch(step: int, rank: int, ranks: int) -> tuple[Tensor, Tensor]:
    """This rank's share of the step's windows."""
    starts = np.random.default_rng(step).integers(0, len(TEXT) - SEQUENCE - 1, BATCH)[rank::ranks]
    rows = np.stack([TEXT[start : start + SEQUENCE + 1] for start in starts])
    return Tensor(rows[:, :-1].reshape(-1)), Tensor(rows[:, 1:].reshape(-1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=5.0)
    options = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    rank, ranks = 0, 1
    if "MS_WORKER_NUM" in os.environ:
        init()
        rank, ranks = get_rank(), get_group_size()
    model = Bigram()
    optimizer = nn.SGD(model.trainable_params(), learning_rate=options.learning_rate)
    grad = ms.value_and_grad(
        lambda tokens, targets: ops.cross_entropy(model(tokens), targets), None, optimizer.parameters
    )
    reduce = ops.AllReduce() if ranks > 1 else None
    for step in range(1, options.steps + 1):
        begin = time.perf_counter()
        loss, gradients = grad(*batch(step, rank, ranks))
        if reduce:
            loss = reduce(loss) / ranks
            gradients = [reduce(gradient) / ranks for gradient in gradients]
        optimizer(tuple(gradients))
        norm = float(np.sqrt(sum(float((gradient**2).sum()) for gradient in gradients)))
        seconds = time.perf_counter() - begin
        print(json.dumps({"step": step, "loss": float(loss), "grad_norm": norm, "step_time": seconds}), flush=True)


if __name__ == "__main__":
    main()
