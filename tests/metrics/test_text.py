import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.metrics import Undefined
from harness.metrics.text import accuracy, distinct_n, perplexity, repetition_ratio

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
