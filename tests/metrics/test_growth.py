"""What grows, and what only scatters."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Undefined
from harness.metrics.growth import FEWEST, growth

levels = st.lists(st.floats(-1, 1), min_size=FEWEST, max_size=60)


@given(st.floats(-10, 10), st.integers(FEWEST, 60), st.floats(0.1, 10))
def test_the_slope_of_a_line_is_its_slope(slope, count, spacing):
    found = growth([5 + slope * spacing * i for i in range(count)], spacing)
    assert found.slope == pytest.approx(slope, abs=1e-9)


@given(levels, st.floats(0, 1000))
def test_a_level_says_nothing(values, level):
    """Adding the same to all moves no slope."""
    plain, shifted = growth(values), growth([level + value for value in values])
    assert shifted.slope == pytest.approx(plain.slope, abs=1e-9)
    assert plain.low <= plain.slope <= plain.high


@given(levels)
def test_backwards_it_falls(values):
    assert growth(values[::-1]).slope == pytest.approx(-growth(values).slope, abs=1e-12)


def test_a_jump_and_outliers_are_no_growth():
    """A cache that fills at the start, and single spikes, as memory has them."""
    scatter = random.Random(0)
    values = [400.0] * 5 + [500 + scatter.uniform(-1, 1) + (30 if i % 17 == 0 else 0) for i in range(95)]
    assert growth(values).low < 0.02


def test_a_leak_under_scatter_is_growth():
    scatter = random.Random(0)
    values = [500 + 0.1 * i + scatter.uniform(-1, 1) for i in range(100)]
    found = growth(values)
    assert 0.08 < found.low < 0.1 < found.high < 0.12


def test_few_values_tell_nothing():
    with pytest.raises(Undefined, match="19 values tell of no growth; it takes 20"):
        growth([1.0] * 19)
