"""Continuations of held-out prompts."""

from collections.abc import Callable, Iterator

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, nn, ops

from harness.corpus import Tokens
from harness.trainer.cache import Memory
from harness.trainer.graph_cache import Graph
from harness.trainer.step import as_tensor

Choose = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float64]], npt.NDArray[np.int32]]
"""(rows, vocabulary) logits and (rows,) uniform draws → (rows,) tokens, as ``Decoding.choose``."""


class NextLogits(Graph):
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

    def __init__(
        self, next_logits: Callable[[Tensor, Tensor], Tensor], sequence: int, memory: Memory | None = None
    ) -> None:
        """Takes a model.

        Args:
            next_logits: as ``NextLogits``.
            sequence: tokens of its context.
            memory: keeps keys and values, so that a token is computed once; while nothing is forgotten it stands in
                for ``next_logits``.
        """
        self.next_logits, self.sequence, self.memory = next_logits, sequence, memory

    def write(self, prompts: Tokens, draws: npt.NDArray[np.float64], choose: Choose) -> Iterator[npt.NDArray[np.int32]]:
        """Continues prompts token by token; past the end of the context the oldest tokens are forgotten.

        Args:
            prompts: (rows, tokens), at most as many as the context has.
            draws: (tokens to write, rows), uniform in [0, 1).
            choose: picks a token for each row.

        Yields:
            (rows,) tokens.
        """
        rows, filled = prompts.shape
        tokens = np.zeros((rows, self.sequence), np.int32)
        tokens[:, :filled] = prompts
        memory = self.memory
        if memory:
            memory.forget()
        for draw in draws:
            if memory:
                logits = memory.next_logits(tokens, filled)
            else:
                logits = self.next_logits(as_tensor(tokens), Tensor(filled - 1, ms.int32))
            chosen = choose(logits.asnumpy(), draw)
            yield chosen
            if filled == self.sequence:
                tokens = np.roll(tokens, -1, axis=1)
                filled -= 1
                # Every token has another place now, and so another key.
                memory = None
            tokens[:, filled] = chosen
            filled += 1

    def continuations(self, windows: Tokens, length: int, seed: int, choose: Choose) -> Tokens:
        """Continues each window's first quarter.

        Args:
            windows: (samples, sequence + 1) held-out tokens.
            length: tokens to write.
            seed: of the draws.
            choose: picks a token for each row.

        Returns:
            (samples, length) tokens.
        """
        prompts = windows[:, : max(1, self.sequence // 4)]
        draws = np.random.Generator(np.random.PCG64([seed, 1])).random((length, len(windows)))
        return np.stack(list(self.write(prompts, draws, choose)), axis=1)
