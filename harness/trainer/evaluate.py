"""Token-weighted evaluation on held-out windows."""

from collections.abc import Callable

import numpy as np
from mindspore import Tensor

from harness.corpus import IGNORED, Tokens
from harness.trainer.step import as_tensor

Loss = Callable[[Tensor], tuple[Tensor, Tensor]]
"""(rows, sequence + 1) windows → sum of negative log-likelihoods in nats, number of tokens."""


class Evaluator:
    """Sums negative log-likelihoods over held-out windows; rows that fill up the last batch weigh nothing."""

    def __init__(self, loss: Loss, set_train: Callable[[bool], object], windows: Tokens, rows: int) -> None:
        """Prepares the batches.

        Args:
            loss: what is evaluated.
            set_train: switches the model to training and back.
            windows: (windows, sequence + 1) held-out tokens.
            rows: of a batch.
        """
        self.loss, self.set_train = loss, set_train
        filling = np.full((-len(windows) % rows, windows.shape[1]), IGNORED, np.int32)
        self.batches = np.concatenate([windows, filling]).reshape(-1, rows, windows.shape[1])

    def __call__(self) -> tuple[float, int]:
        """Nats summed over the tokens that count, and their number."""
        total, tokens = 0.0, 0
        self.set_train(False)
        for batch in self.batches:
            nll, counted = self.loss(as_tensor(batch))
            total += float(nll.asnumpy())
            tokens += int(counted.asnumpy())
        self.set_train(True)
        return total, tokens
