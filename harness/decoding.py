"""Which token comes next, given the model's logits. Pure."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.errors import ScenarioError

Logits = npt.NDArray[np.float32]
Draws = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decoding:
    """How tokens are chosen.

    Raises:
        ScenarioError: a value is out of range.
    """

    temperature: float = 1.0
    """Divides the logits; 0 takes the likeliest token always."""

    top_k: int = 0
    """Likeliest tokens that may be chosen; 0 for all."""

    top_p: float = 1.0
    """Share of the probability that the likeliest tokens must reach, and no more may be chosen than reach it (Holtzman
    et al. 2020, «The Curious Case of Neural Text Degeneration»)."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ScenarioError(f"temperature must be a finite number of at least 0, not {self.temperature!r}")
        if isinstance(self.top_k, bool) or not isinstance(self.top_k, int) or self.top_k < 0:
            raise ScenarioError(f"top_k must be a whole number of at least 0, not {self.top_k!r}")
        if not 0 < self.top_p <= 1:
            raise ScenarioError(f"top_p must be above 0 and at most 1, not {self.top_p!r}")

    def choose(self, logits: Logits, draws: Draws) -> npt.NDArray[np.int32]:
        """A token for each row, by inverting the cumulative sum of the probabilities that are left.

        Args:
            logits: (rows, vocabulary).
            draws: (rows,) uniform in [0, 1).

        Returns:
            (rows,) tokens.
        """
        if self.temperature == 0:
            likeliest: npt.NDArray[np.int64] = logits.argmax(axis=-1)
            return likeliest.astype(np.int32)
        weights = self.weights(logits)
        cumulative = np.cumsum(weights, axis=-1)
        chosen: npt.NDArray[np.int64] = (cumulative <= draws[:, None] * cumulative[:, -1:]).sum(axis=-1)
        return np.minimum(chosen, _last(weights)).astype(np.int32)

    def weights(self, logits: Logits) -> npt.NDArray[np.float64]:
        """What each token's chance is proportional to; 0 for those that may not be chosen. The temperature is not 0."""
        scaled = (logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)) / self.temperature
        weights: npt.NDArray[np.float64] = np.exp(scaled)
        if not self.top_k and self.top_p == 1:
            return weights
        # Of equal ones, the first comes first.
        order = np.argsort(-scaled, axis=-1, kind="stable")
        ranked = np.take_along_axis(weights, order, -1)
        kept = np.ones(ranked.shape, np.bool_)
        if self.top_k:
            kept[:, self.top_k :] = False
            ranked = ranked * kept
        before = np.cumsum(ranked, axis=-1) - ranked
        kept &= before < self.top_p * ranked.sum(axis=-1, keepdims=True)
        allowed = np.zeros(kept.shape, np.bool_)
        np.put_along_axis(allowed, order, kept, -1)
        return weights * allowed


def _last(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The last token of each row that may be chosen."""
    found: npt.NDArray[np.int64] = weights.shape[-1] - 1 - (weights[:, ::-1] > 0).argmax(axis=-1)
    return found
