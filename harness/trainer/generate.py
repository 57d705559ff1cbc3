"""Sampled continuations of held-out prompts."""

from collections.abc import Callable

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, nn, ops

from harness.corpus import Tokens
from harness.trainer.step import as_tensor

Choose = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float64]], npt.NDArray[np.int32]]
"""(rows, vocabulary) logits and (rows,) uniform draws → (rows,) tokens."""


class NextLogits(nn.Cell):
    """Logits of the token after a position."""

    def __init__(self, model: nn.Cell, gather: nn.Cell | None = None) -> None:
        """Takes a model.

        Args:
            model: tokens to logits.
            gather: puts logits together whose vocabulary is spread over ranks.
        """
        super().__init__(auto_prefix=False)
        self.model = model
        self.gather = gather

    def construct(self, tokens: Tensor, position: Tensor) -> Tensor:
        """(rows, sequence) tokens, of which those after ``position`` do not matter → (rows, vocabulary)."""
        logits = ops.gather(self.model(tokens), position, 1)
        return logits if self.gather is None else self.gather(logits)


def sample_token(logits: npt.NDArray[np.float32], draws: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Draws from the model's distribution (temperature 1) by inverting its cumulative sum."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    cumulative = np.cumsum(np.exp(shifted), axis=-1)
    chosen: npt.NDArray[np.int64] = (cumulative < draws[:, None] * cumulative[:, -1:]).sum(axis=-1)
    return np.minimum(chosen, np.int64(logits.shape[1] - 1)).astype(np.int32)


def continuations(
    next_logits: Callable[[Tensor, Tensor], Tensor],
    windows: Tokens,
    length: int,
    seed: int,
    choose: Choose = sample_token,
) -> Tokens:
    """Continues each window's first quarter.

    Args:
        next_logits: as ``NextLogits``, of the windows' sequence length.
        windows: (samples, sequence + 1) held-out tokens.
        length: tokens to write; past the sequence's end the oldest tokens are forgotten.
        seed: of the draws.
        choose: picks a token for each row.

    Returns:
        (samples, length) tokens.
    """
    sequence = windows.shape[1] - 1
    filled = max(1, sequence // 4)
    tokens = np.zeros((len(windows), sequence), np.int32)
    tokens[:, :filled] = windows[:, :filled]
    draws = np.random.Generator(np.random.PCG64([seed, 1])).random((length, len(windows)))
    written = np.empty((len(windows), length), np.int32)
    for i in range(length):
        logits = next_logits(as_tensor(tokens), Tensor(filled - 1, ms.int32)).asnumpy()
        written[:, i] = choose(logits, draws[i])
        if filled == sequence:
            tokens = np.roll(tokens, -1, axis=1)
            filled -= 1
        tokens[:, filled] = written[:, i]
        filled += 1
    return written
