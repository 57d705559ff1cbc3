import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.metrics import Undefined
from harness.metrics.text import (
    accuracy,
    distinct_n,
    empty_share,
    longest_repeated_span,
    perplexity,
    repetition_ratio,
    self_similarity,
)

corpora = st.lists(st.lists(st.integers(0, 5), max_size=12), max_size=6)


def test_distinct_2_is_over_the_corpus_not_the_mean_of_sentences():
    assert distinct_n(["a b", "a b", ""], 2) == 0.5
    assert repetition_ratio(["a b", "a b", ""], 2) == 0.5


def test_distinct_of_chinese_words():
    corpus = ["我 喜欢 你", "我 喜欢 他"]
    assert distinct_n(corpus, 1) == 4 / 6
    assert distinct_n(corpus, 2) == 3 / 4


def test_a_corpus_without_n_grams_is_undefined():
    with pytest.raises(Undefined, match="the corpus holds no 2-gram"):
        distinct_n(["a", ""], 2)
    with pytest.raises(ValueError, match="at least 1"):
        distinct_n(["a"], 0)


@given(corpora, st.integers(1, 3))
def test_distinct_is_a_share(corpus, n):
    assume(any(len(s) >= n for s in corpus))
    value = distinct_n(corpus, n)
    assert 0 < value <= 1
    assert repetition_ratio(corpus, n) == 1 - value
    assert distinct_n(list(reversed(corpus)), n) == value
    assert distinct_n(corpus + corpus, n) == pytest.approx(value / 2)
    assert distinct_n([*corpus, []], n) == value


def spelled_out(corpus, n):
    grams = [tuple(s[i : i + n]) for s in corpus for i in range(len(s) - n + 1)]
    return len(set(grams)) / len(grams)


numbers = st.integers(-(2**40), 2**40) | st.integers(0, 3)


@given(st.lists(st.lists(numbers, max_size=12), max_size=6), st.integers(1, 5))
def test_distinct_counts_as_by_hand_whatever_the_tokens(corpus, n):
    assume(any(len(s) >= n for s in corpus))
    value = spelled_out(corpus, n)
    assert distinct_n(corpus, n) == value
    assert distinct_n([np.array(s, np.int64) for s in corpus], n) == value
    assert distinct_n([[f"token {t} é 字" for t in s] for s in corpus], n) == value


def test_tokens_that_fill_a_machine_word_stay_apart():
    """65 536 tokens to the fourth is 2⁶⁴: without a new numbering the first of five would count for nothing."""
    corpus = [np.array(s) for s in ([0, 1, 1, 1, 1], [1, 1, 1, 1, 1], [65_535])]
    assert distinct_n(corpus, 5) == 1.0
    extremes = [np.array([-(2**63), 2**63 - 1, 0]), np.array([-(2**63), 2**63 - 1, 1])]
    assert distinct_n(extremes, 2) == 3 / 4
    assert distinct_n(extremes, 3) == 1.0


@given(corpora, st.permutations(range(6)))
def test_names_of_tokens_do_not_matter(corpus, names):
    assume(any(corpus))
    assert distinct_n(corpus, 1) == distinct_n([[names[t] for t in s] for s in corpus], 1)


def test_perplexity_weighs_tokens():
    assert perplexity(2.0 * 10 + 4.0 * 90, 100) == pytest.approx(44.7012, abs=1e-4)
    assert perplexity(0.1 + 0.2 + 0.1, 3) == pytest.approx(1.142631, abs=1e-6)


def test_perplexity_without_tokens_is_undefined():
    with pytest.raises(Undefined, match="no token counts"):
        perplexity(0.0, 0)


def test_perplexity_past_the_range_of_floats_is_infinite():
    assert perplexity(1e6, 1) == math.inf


def test_one_empty_and_one_perfect_prediction_score_a_half():
    assert accuracy(["", "yes"], ["no", "yes"]) == 0.5
    with pytest.raises(Undefined):
        accuracy([], [])
    with pytest.raises(ValueError, match="zip"):
        accuracy(["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("sequence", "longest"),
    [
        ("a b c a b c a b c", 6),
        ("a b c d e", 0),
        ("a a a a", 3),
        ("x a b y a b z", 2),
        ("", 0),
        ("a", 0),
        ("我 喜欢 你 我 喜欢 他", 2),
    ],
)
def test_the_longest_span_that_stands_twice(sequence, longest):
    assert longest_repeated_span(sequence) == longest


@given(st.lists(st.integers(0, 3), max_size=20))
def test_the_longest_span_is_as_by_hand(tokens):
    spans = [tuple(tokens[i:j]) for i in range(len(tokens)) for j in range(i + 1, len(tokens) + 1)]
    twice = [len(span) for span in set(spans) if spans.count(span) > 1]
    assert longest_repeated_span(tokens) == max(twice, default=0)
    assert longest_repeated_span(tokens[::-1]) == longest_repeated_span(tokens)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=10), st.integers(2, 4))
def test_a_loop_repeats_all_but_its_first_round(phrase, rounds):
    assert longest_repeated_span(phrase * rounds) >= len(phrase) * (rounds - 1)


def test_samples_that_are_alike():
    assert self_similarity(["a b c", "a b c"], 2) == 1.0
    assert self_similarity(["a b", "c d"], 1) == 0.0
    # {ab, bc} and {ab, bd}: one of two in common.
    assert self_similarity(["a b c", "a b d"], 2) == 0.5
    # The pairs are 1, 0 and 0.
    assert self_similarity(["a b", "a b", "c d"], 2) == pytest.approx(1 / 3)


@pytest.mark.parametrize("corpus", [[], ["a b c"], ["a b c", "d"], ["", ""]])
def test_one_sample_is_like_no_other(corpus):
    with pytest.raises(Undefined, match="fewer than two sequences hold a 2-gram"):
        self_similarity(corpus, 2)


@given(corpora, st.integers(1, 3), st.randoms())
def test_similarity_is_a_share_of_pairs(corpus, n, random):
    assume(sum(len(s) >= n for s in corpus) >= 2)
    value = self_similarity(corpus, n)
    assert 0 <= value <= 1
    shuffled = random.sample(corpus, len(corpus))
    assert self_similarity(shuffled, n) == pytest.approx(value)
    assert self_similarity([*corpus, []], n) == value
    assert self_similarity([corpus[0] * 2] * 3 if len(corpus[0]) >= n else [[0] * n] * 2, n) == 1.0


@pytest.mark.parametrize(
    ("texts", "share"),
    [(["", "a"], 0.5), ([" \n\t", "\x00\x07"], 1.0), (["。", "é"], 0.0), (["a", "", "b", "\u2028"], 0.5)],
)
def test_texts_that_show_nothing(texts, share):
    assert empty_share(texts) == share


def test_no_texts_are_no_empty_texts():
    with pytest.raises(Undefined, match="there are none"):
        empty_share([])
