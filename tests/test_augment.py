"""Masked tokens and shuffled sentences: how many, which, and that nothing else changes."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.augment import mask, shuffle_sentences

WINDOWS = np.arange(200 * 50, dtype=np.int32).reshape(200, 50) % 256
seeds = st.integers(0, 2**31)


@given(st.floats(0.05, 0.15), seeds)
def test_as_many_are_masked_as_was_said(share, seed):
    """A binomial count of 10 000 draws, within five standard deviations."""
    hidden = int((mask(WINDOWS, share, seed, -1) == -1).sum())
    assert abs(hidden - 10_000 * share) < 5 * np.sqrt(10_000 * share * (1 - share))


@given(st.floats(0.0, 0.15), seeds)
def test_what_is_not_masked_stays(share, seed):
    found = mask(WINDOWS, share, seed, -1)
    assert found.dtype == np.int32
    assert ((found == WINDOWS) | (found == -1)).all()
    assert (mask(WINDOWS, share, seed, -1) == found).all()


def test_every_place_is_masked_as_often():
    """Chi-squared over the places of a window: no place is spared."""
    hidden = sum((mask(WINDOWS, 0.1, seed, -1) == -1).sum(axis=0) for seed in range(20))
    assert stats.chisquare(hidden).pvalue > 1e-4


def test_a_mask_does_not_follow_its_neighbour():
    hidden = mask(WINDOWS, 0.1, 0, -1) == -1
    both = (hidden[:, 1:] & hidden[:, :-1]).mean()
    assert both == pytest.approx(0.01, abs=0.005)


sentence = st.text("abc xyz,", min_size=1, max_size=12).map(lambda text: f"{text.strip() or 'a'}.")
paragraph = st.lists(sentence, min_size=1, max_size=6).map(" ".join)


@given(st.lists(paragraph, min_size=1, max_size=4), seeds)
def test_shuffling_keeps_every_sentence_in_its_paragraph(paragraphs, seed):
    shuffled = shuffle_sentences("\n\n".join(paragraphs), seed).split("\n\n")
    assert len(shuffled) == len(paragraphs)
    for before, after in zip(paragraphs, shuffled, strict=True):
        assert sorted(before.replace(".", "").split()) == sorted(after.replace(".", "").split())
        assert len(before) == len(after)


def test_every_order_is_as_likely():
    found = Counter(shuffle_sentences("One. Two! Three?", seed) for seed in range(1200))
    assert set(found) == {" ".join(order) for order in permutations(("One.", "Two!", "Three?"))}
    assert stats.chisquare(list(found.values())).pvalue > 1e-4


def test_chinese_sentences_and_single_ones():
    assert sorted(shuffle_sentences("你好。 再见！", 1).split()) == ["你好。", "再见！"]
    assert shuffle_sentences("one line without an end", 1) == "one line without an end"
    assert shuffle_sentences("", 1) == ""
