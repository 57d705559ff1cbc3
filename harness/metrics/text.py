"""What a model writes: perplexity, diversity, repetition, token accuracy."""

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import Undefined

Numbers = npt.NDArray[np.int64]
Sample = str | Sequence[Hashable] | npt.NDArray[np.integer[Any]]
"""Tokens, or a text that is split at white space."""

_LARGEST = 2**62
_SMALL = 2**20
"""Tokens up to here are taken as they are; others are numbered anew, so that n-grams fit into a number."""


def _tokens(sequence: Sample) -> Sequence[Hashable] | npt.NDArray[np.integer[Any]]:
    return sequence.split() if isinstance(sequence, str) else sequence


def _numbered(sequences: Iterable[Sample]) -> tuple[Numbers, Numbers]:
    """Every token of a corpus as a small number, equal ones alike; and which sequence it is of."""
    corpus = [_tokens(sequence) for sequence in sequences]
    lengths = np.fromiter((len(tokens) for tokens in corpus), np.int64, len(corpus))
    arrays = [np.asarray(tokens) for tokens in corpus if isinstance(tokens, np.ndarray)]
    if corpus and len(arrays) == len(corpus):
        numbers = _small(np.concatenate(arrays).astype(np.int64))
    else:
        names: dict[Hashable, int] = {}
        flat = (names.setdefault(token, len(names)) for tokens in corpus for token in tokens)
        numbers = np.fromiter(flat, np.int64, int(lengths.sum()))
    return numbers, np.repeat(np.arange(len(corpus)), lengths)


def _small(numbers: Numbers) -> Numbers:
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if high - low < _SMALL:
        return numbers - low
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def _grams(sequences: Iterable[Sample], n: int) -> tuple[Numbers, Numbers]:
    """Every n-gram of a corpus as a number, equal ones alike; and which sequence it is of."""
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    numbers, owners = _numbered(sequences)
    grams, count = numbers, int(numbers.max(initial=0)) + 1
    for length in range(2, n + 1):
        if int(grams.max(initial=0)) + 1 > _LARGEST // count:
            grams = np.unique(grams, return_inverse=True)[1].astype(np.int64)
        grams = grams[: max(0, len(numbers) - length + 1)] * count + numbers[length - 1 :]
    # Where the first and the last token are of two sequences, it is none.
    whole = owners[: len(grams)] == owners[n - 1 :]
    return grams[whole], owners[: len(grams)][whole]


def distinct_n(sequences: Iterable[Sample], n: int) -> float:
    """Share of n-grams of a corpus that are unique (Li et al. 2016, «A Diversity-Promoting Objective Function»).

    Args:
        sequences: the corpus; each a sequence of tokens, or a string, which is split at white space. N-grams never
            cross from one sequence to the next. Where all are arrays of whole numbers, no token becomes an object.
        n: length of the n-grams, at least 1.

    Returns:
        Unique / total n-grams over the whole corpus, in (0, 1].

    Raises:
        Undefined: the corpus holds no n-gram.
    """
    grams, _ = _grams(sequences, n)
    if not len(grams):
        raise Undefined(f"distinct-{n} is undefined: the corpus holds no {n}-gram")
    return len(np.unique(grams)) / len(grams)


def repetition_ratio(sequences: Iterable[Sample], n: int) -> float:
    """Share of n-grams that occurred before: 1 − ``distinct_n``, in [0, 1)."""
    return 1.0 - distinct_n(sequences, n)


def longest_repeated_span(sequence: Sample) -> int:
    """Tokens of the longest span that stands in a sequence twice; the two may overlap.

    ``a b c a b c a b c`` has one of 6. Every shift of the sequence against itself is looked at: the longest run of
    equal tokens is the answer, in time quadratic in the length.
    """
    tokens, _ = _numbered([sequence])
    longest = 0
    for shift in range(1, len(tokens)):
        if len(tokens) - shift <= longest:
            break
        breaks = np.flatnonzero(tokens[:-shift] != tokens[shift:])
        edges = np.concatenate([[-1], breaks, [len(tokens) - shift]])
        longest = max(longest, int(np.diff(edges).max()) - 1)
    return longest


def self_similarity(sequences: Iterable[Sample], n: int) -> float:
    """How much the sequences of a corpus are alike: the mean over all pairs of the share of n-grams that both have.

    The share of a pair is Dice's coefficient of the two sets of n-grams, 2·|A ∩ B| / (|A| + |B|) (Dice 1945). Cheaper
    than Self-BLEU (Zhu et al. 2018, «Texygen»), and as blind to order beyond n tokens.

    Returns:
        0 where no two share an n-gram, 1 where all are made of the same ones.

    Raises:
        Undefined: fewer than two sequences have an n-gram.
    """
    grams, owners = _grams(sequences, n)
    sets = [set(grams[owners == owner].tolist()) for owner in np.unique(owners)]
    if len(sets) < 2:
        raise Undefined(f"self-similarity is undefined: fewer than two sequences hold a {n}-gram")
    shares = [2 * len(a & b) / (len(a) + len(b)) for a, b in itertools.combinations(sets, 2)]
    return math.fsum(shares) / len(shares)


def empty_share(texts: Sequence[str]) -> float:
    """Share of texts that show nothing: no character but white space and control characters.

    Raises:
        Undefined: there are no texts.
    """
    if not texts:
        raise Undefined("the share of empty texts is undefined: there are none")
    return sum(not any(char.isprintable() and not char.isspace() for char in text) for text in texts) / len(texts)


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
