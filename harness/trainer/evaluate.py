"""Token-weighted evaluation on held-out windows."""

import numpy as np
from mindspore import nn

from harness.corpus import IGNORED, Tokens
from harness.trainer.step import TokenLoss, as_tensor


class Evaluator:
    """Sums negative log-likelihoods over held-out windows; rows that fill up the last batch weigh nothing."""

    def __init__(self, model: nn.Cell, windows: Tokens, rows: int) -> None:
        self.loss = TokenLoss(model)
        filling = np.full((-len(windows) % rows, windows.shape[1]), IGNORED, np.int32)
        self.batches = np.concatenate([windows, filling]).reshape(-1, rows, windows.shape[1])

    def __call__(self) -> tuple[float, int]:
        """Nats summed over the tokens that count, and their number."""
        total, tokens = 0.0, 0
        self.loss.set_train(False)
        for batch in self.batches:
            nll, counted = self.loss(as_tensor(batch))
            total += float(nll.asnumpy())
            tokens += int(counted.asnumpy())
        self.loss.set_train(True)
        return total, tokens
