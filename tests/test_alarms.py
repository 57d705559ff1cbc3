import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.alarms import FEWEST, IN_A_ROW, Alarms

NORMAL = (1.0, 0.03, 1e-3, 1e-3)
"""Gradient norm, update norm, rate, scheduled rate."""


def given_by(*steps):
    alarms = Alarms()
    for number, step in enumerate(steps, start=1):
        alarms.look(number, *step)
    return alarms.given


def test_a_usual_training_gives_none():
    assert given_by(*[NORMAL] * 50) == {}


@given(st.lists(st.floats(0.2, 2.0), min_size=10, max_size=60))
def test_what_scatters_as_usual_gives_none(norms):
    rates = [1e-3 * (step + 1) / len(norms) for step in range(len(norms))]
    steps = [(norm, 30 * norm * rate, rate, rate) for norm, rate in zip(norms, rates, strict=True)]
    assert given_by(*steps) == {}


def test_a_rate_that_left_its_schedule():
    assert given_by(NORMAL, (1.0, 0.03, 1.1e-3, 1e-3), (1.0, 0.03, 1.1e-3, 1e-3)) == {
        "rate": "step 2: the learning rate left its schedule: 0.0011 instead of 0.001"
    }
    assert given_by((1.0, 0.0, 0.0, 0.0), (1.0, 0.03, 1e-3 * (1 + 1e-7), 1e-3)) == {}
    assert "rate" in given_by((1.0, 0.03, 1e-3, 0.0))


def test_an_update_that_vanishes():
    told = given_by(*[NORMAL] * FEWEST, (1.0, 0.0, 1e-3, 1e-3))
    assert told == {"update": f"step {FEWEST + 1}: the update vanished: its norm is 0, nothing is learned"}
    # A small update of a small rate is as it should be.
    assert given_by(*[NORMAL] * FEWEST, (1.0, 0.03e-6, 1e-9, 1e-9), (1.0, 0.0, 0.0, 0.0)) == {}


@pytest.mark.parametrize("steps", range(1, IN_A_ROW + 3))
def test_a_norm_that_rises_and_stays(steps):
    told = given_by(*[NORMAL] * 20, *[(50.0, 0.03, 1e-3, 1e-3)] * steps)
    assert ("norm" in told) == (steps >= IN_A_ROW)
    if told:
        assert told["norm"].startswith(
            f"step {20 + IN_A_ROW}: the gradient norm rose to 50 and stayed there for 3 steps"
        )


def test_an_update_that_nobody_knows_gives_none():
    assert given_by(*[(1.0, None, 1e-3, 1e-3)] * 20) == {}


def test_single_spikes_give_none():
    assert given_by(*([NORMAL] * 6 + [(50.0, 0.03, 1e-3, 1e-3)] * (IN_A_ROW - 1)) * 5) == {}


def test_what_is_no_number_is_left_to_others():
    assert given_by(*[NORMAL] * 10, *[(math.nan, math.nan, 1e-3, 1e-3)] * 5) == {}
