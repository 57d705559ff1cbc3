"""Token-weighted evaluation on held-out windows."""

from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from harness.corpus import IGNORED, Tokens
from harness.evaluation import Evaluation
from harness.trainer.graph_cache import Graph
from harness.trainer.loss import CrossEntropy, inputs_of
from harness.trainer.step import as_tensor

Score = Callable[[Tensor], Tensor]
"""(rows, sequence + 1) windows → (3,): nats summed over the tokens that count, their number, and how many of them were
the likeliest."""


class Scores(nn.Cell):
    """What an evaluation adds up, given the logits."""

    def __init__(self, entropy: nn.Cell | None = None, gather: nn.Cell | None = None) -> None:
        """Chooses how to look at logits.

        Args:
            entropy: in place of ``CrossEntropy``, where the vocabulary is spread over ranks.
            gather: puts such logits together.
        """
        super().__init__(auto_prefix=False)
        self.entropy = entropy or CrossEntropy()
        self.gather = gather

    def construct(self, logits: Tensor, windows: Tensor) -> Tensor:
        """(rows, sequence, vocabulary), (rows, sequence + 1) int32 → (3,), as ``Score``."""
        targets = windows[:, 1:].reshape(-1)
        logits = logits.reshape(-1, logits.shape[-1])
        counted = ops.cast(targets != IGNORED, ms.float32)
        nll = self.entropy(logits, ops.maximum(targets, 0))
        whole = logits if self.gather is None else self.gather(logits)
        # No token is IGNORED, so what does not count is never correct.
        correct = ops.cast(ops.cast(ops.argmax(whole, -1), ms.int32) == targets, ms.float32)
        return ops.stack((ops.reduce_sum(nll * counted), ops.reduce_sum(counted), ops.reduce_sum(correct)))


class Scored(Graph):
    """A whole model, evaluated."""

    def __init__(self, model: nn.Cell, scores: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.model = model
        self.scores = scores

    def construct(self, windows: Tensor) -> Tensor:
        """As ``Score``."""
        return self.scores(self.model(inputs_of(windows)), windows)


class Evaluator:
    """Evaluates held-out windows; rows that fill up the last batch weigh nothing."""

    def __init__(self, score: Score, set_train: Callable[[bool], object], windows: Tokens, rows: int) -> None:
        """Prepares the batches.

        Args:
            score: evaluates a batch.
            set_train: switches the model to training and back.
            windows: (windows, sequence + 1) held-out tokens.
            rows: of a batch.
        """
        self.score, self.set_train = score, set_train
        filling = np.full((-len(windows) % rows, windows.shape[1]), IGNORED, np.int32)
        self.batches = np.concatenate([windows, filling]).reshape(-1, rows, windows.shape[1])

    def __call__(self) -> Evaluation:
        """All windows."""
        self.set_train(False)
        sums = np.sum([self.score(as_tensor(batch)).asnumpy() for batch in self.batches], axis=0, dtype=np.float64)
        self.set_train(True)
        return Evaluation(float(sums[0]), int(sums[1]), int(sums[2]))
