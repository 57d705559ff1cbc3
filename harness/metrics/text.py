"""What a model writes: perplexity, diversity, repetition, token accuracy."""

import math
from collections.abc import Hashable, Iterable, Sequence

from harness.errors import Undefined


def _tokens(sequence: str | Sequence[Hashable]) -> Sequence[Hashable]:
    return sequence.split() if isinstance(sequence, str) else sequence


def distinct_n(sequences: Iterable[str | Sequence[Hashable]], n: int) -> float:
    """Share of n-grams of a corpus that are unique (Li et al. 2016, «A Diversity-Promoting Objective Function»).

    Args:
        sequences: the corpus; each a sequence of tokens, or a string, which is split at white space. N-grams never
            cross from one sequence to the next.
        n: length of the n-grams, at least 1.

    Returns:
        Unique / total n-grams over the whole corpus, in (0, 1].

    Raises:
        Undefined: the corpus holds no n-gram.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    total = 0
    unique: set[tuple[Hashable, ...]] = set()
    for sequence in sequences:
        tokens = tuple(_tokens(sequence))
        grams = [tokens[i : i + n] for i in range(len(tokens) - n + 1)]
        total += len(grams)
        unique.update(grams)
    if not total:
        raise Undefined(f"distinct-{n} is undefined: the corpus holds no {n}-gram")
    return len(unique) / total


def repetition_ratio(sequences: Iterable[str | Sequence[Hashable]], n: int) -> float:
    """Share of n-grams that occurred before: 1 − ``distinct_n``, in [0, 1)."""
    return 1.0 - distinct_n(sequences, n)


def perplexity(nll_sum: float, tokens: int) -> float:
    """Exp of the mean negative log-likelihood.

    Args:
        nll_sum: negative log-likelihoods in nats, summed over all tokens that count.
        tokens: their number.

    Returns:
        The perplexity; infinity where it leaves the range of a float.

    Raises:
        Undefined: no token counts.
    """
    if tokens <= 0:
        raise Undefined("perplexity is undefined: no token counts")
    try:
        return math.exp(nll_sum / tokens)
    except OverflowError:
        return math.inf


def accuracy(predictions: Sequence[Hashable], references: Sequence[Hashable]) -> float:
    """Share of references that were predicted; an empty prediction is a wrong one.

    Raises:
        Undefined: there is no reference.
        ValueError: the two differ in length.
    """
    if not references:
        raise Undefined("accuracy is undefined: no reference")
    return sum(p == r for p, r in zip(predictions, references, strict=True)) / len(references)
