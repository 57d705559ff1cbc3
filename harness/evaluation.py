"""What an evaluation on held-out tokens found. Pure."""

from typing import NamedTuple

from harness.errors import Undefined
from harness.metrics.text import perplexity


class Evaluation(NamedTuple):
    """Sums over held-out tokens."""

    nll: float
    """Nats."""

    tokens: int
    correct: int
    """Tokens that the model held for the likeliest."""

    @property
    def perplexity(self) -> float:
        """As ``harness.metrics.text.perplexity``."""
        return perplexity(self.nll, self.tokens)

    @property
    def accuracy(self) -> float:
        """Share of the tokens that the model held for the likeliest.

        Raises:
            Undefined: no token counts.
        """
        if not self.tokens:
            raise Undefined("token accuracy is undefined: no token counts")
        return self.correct / self.tokens
