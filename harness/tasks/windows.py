"""Cuts a text that is longer than a model's context. Pure."""

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]


def rolling(text: Tokens, sequence: int, before: Tokens) -> list[tuple[Tokens, Tokens]]:
    """Endings that make up a text, each behind as much of what comes before it as the context has room for.

    Args:
        text: (tokens,).
        sequence: tokens of the context.
        before: stands before the first token, which it would have nothing to be predicted from otherwise.

    Returns:
        Contexts and endings; together at most one token longer than ``sequence``.
    """
    tokens = np.concatenate([before, text])
    pieces = []
    for start in range(len(before), len(tokens), sequence):
        end = min(start + sequence, len(tokens))
        pieces.append((tokens[max(0, end - sequence - 1) : start], tokens[start:end]))
    return pieces
