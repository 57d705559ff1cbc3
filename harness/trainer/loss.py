"""The loss that is trained and evaluated: cross-entropy summed over the tokens that count."""

import mindspore as ms
from mindspore import Tensor, nn, ops

from harness.corpus import IGNORED


class CrossEntropy(nn.Cell):
    """Negative log-likelihood of each row's target."""

    def __init__(self) -> None:
        super().__init__(auto_prefix=False)

    def construct(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(rows, vocabulary) float32, (rows,) int32 → (rows,) nats."""
        return ops.cross_entropy(logits, targets, reduction="none")


class LossSums(nn.Cell):
    """Sums over the tokens that count, given the logits."""

    def __init__(self, entropy: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.entropy = entropy

    def construct(self, logits: Tensor, windows: Tensor) -> tuple[Tensor, Tensor]:
        """(rows, sequence, vocabulary), (rows, sequence + 1) int32 → sum in nats, number of tokens."""
        targets = windows[:, 1:].reshape(-1)
        nll = self.entropy(logits.reshape(-1, logits.shape[-1]), ops.maximum(targets, 0))
        counted = ops.cast(targets != IGNORED, ms.float32)
        return ops.reduce_sum(nll * counted), ops.reduce_sum(counted)


class TokenLoss(nn.Cell):
    """A whole model and its loss."""

    def __init__(self, model: nn.Cell, entropy: nn.Cell | None = None) -> None:
        """Puts the loss behind the model.

        Args:
            model: tokens to logits.
            entropy: in place of ``CrossEntropy``, where the vocabulary is spread over ranks.
        """
        super().__init__(auto_prefix=False)
        self.model = model
        self.sums = LossSums(entropy or CrossEntropy())

    def construct(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """(rows, sequence + 1) int32 → sum of negative log-likelihoods in nats, number of tokens."""
        sums: tuple[Tensor, Tensor] = self.sums(self.model(inputs_of(windows)), windows)
        return sums


def inputs_of(windows: Tensor) -> Tensor:
    """The tokens that a model reads: all but the last, padding as token 0."""
    return ops.maximum(windows[:, :-1], 0)
