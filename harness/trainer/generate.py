"""Continuations of held-out prompts."""

from collections.abc import Callable

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, nn, ops

from harness.corpus import Tokens
from harness.trainer.cache import Memory
from harness.trainer.step import as_tensor

Choose = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float64]], npt.NDArray[np.int32]]
"""(rows, vocabulary) logits and (rows,) uniform draws → (rows,) tokens, as ``Decoding.choose``."""


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


class Writer:
    """Continues prompts."""

    def __init__(self, next_logits: Callable[[Tensor, Tensor], Tensor], memory: Memory | None = None) -> None:
        """Takes a model.

        Args:
            next_logits: as ``NextLogits``, of the windows' sequence length.
            memory: keeps keys and values, so that a token is computed once; while nothing is forgotten it stands in
                for ``next_logits``.
        """
        self.next_logits, self.memory = next_logits, memory

    def continue_(self, windows: Tokens, length: int, seed: int, choose: Choose) -> Tokens:
        """Continues each window's first quarter.

        Args:
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
        memory = self.memory
        if memory:
            memory.forget()
        for i in range(length):
            if memory:
                logits = memory.next_logits(tokens, filled)
            else:
                logits = self.next_logits(as_tensor(tokens), Tensor(filled - 1, ms.int32))
            written[:, i] = choose(logits.asnumpy(), draws[i])
            if filled == sequence:
                tokens = np.roll(tokens, -1, axis=1)
                filled -= 1
                # Every token has another place now, and so another key.
                memory = None
            tokens[:, filled] = written[:, i]
            filled += 1
        return written
