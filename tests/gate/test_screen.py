import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate import Policy, Status
from harness.gate.screen import prediction_interval, rules_out_regression, screen
from harness.metrics import METRICS

STEP_TIME = METRICS["step_time"]
THROUGHPUT = METRICS["throughput"]
FLOOR = Policy(0.05)

times = st.lists(st.floats(0.01, 100), min_size=1, max_size=20)


def test_interval_of_one_run_is_wide_and_says_so():
    interval = prediction_interval([1.0])
    # t(3 degrees of freedom, 0.99) = 4.5407; spread 5 % of the prior; √2 for one run against one.
    half = 4.5407 * 0.05 * math.sqrt(2)
    assert interval.high == pytest.approx(math.exp(half), rel=1e-4)
    assert interval.low == pytest.approx(math.exp(-half), rel=1e-4)
    assert "after 1 approved run" in str(interval)


def test_interval_narrows_as_runs_are_approved():
    widths = [math.log(i.high / i.low) for i in (prediction_interval([1.0] * n) for n in (1, 2, 5, 20))]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 4


@given(times, st.floats(0.1, 10))
def test_interval_follows_the_unit(samples, factor):
    one, other = prediction_interval(samples), prediction_interval([factor * s for s in samples])
    assert (other.low, other.high) == pytest.approx((factor * one.low, factor * one.high))
    assert one.low < one.center < one.high


@given(times)
def test_order_of_runs_does_not_matter(samples):
    assert prediction_interval(samples[::-1]).high == pytest.approx(prediction_interval(samples).high)


@pytest.mark.parametrize("samples", [[], [0.0, 1.0], [-1.0]])
def test_a_prediction_needs_positive_samples(samples):
    with pytest.raises(ValueError, match="positive samples"):
        prediction_interval(samples)


@pytest.mark.parametrize(("approved", "slowdown", "power"), [(1, 1.6, 0.95), (5, 1.25, 0.95), (20, 1.15, 0.95)])
def test_unchanged_code_is_rarely_suspected_and_a_slowdown_is_found(approved, slowdown, power):
    """Between runs 3 %: at most 1 % false alarms, and the slowdown that so many runs can tell is found."""
    runs = np.exp(np.random.Generator(np.random.PCG64(1)).normal(0, 0.03, (2000, approved + 1)))
    suspected = [
        [
            screen(STEP_TIME, factor * value, samples, FLOOR).status is Status.REGRESSED
            for *samples, value in runs.tolist()
        ]
        for factor in (1.0, slowdown)
    ]
    alarms, found = np.mean(suspected, axis=1)
    assert alarms <= 0.01
    assert found >= power


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        (STEP_TIME, 1.2, Status.REGRESSED),
        (STEP_TIME, 0.8, Status.IMPROVED),
        (THROUGHPUT, 0.8, Status.REGRESSED),
        (THROUGHPUT, 1.2, Status.IMPROVED),
        (STEP_TIME, 1.04, Status.PASS),
    ],
)
def test_direction(metric, value, expected):
    assert screen(metric, value, [1.0] * 20, FLOOR).status is expected


def test_the_reason_names_the_interval():
    assert "outside 0.9" in screen(STEP_TIME, 1.5, [1.0] * 20, FLOOR).reason
    assert screen(STEP_TIME, 1.2, [1.0], FLOOR).reason.startswith("within 0.72")


def test_a_change_within_the_floor_is_none_however_steady_the_machine():
    assert screen(STEP_TIME, 1.2, [1.0] * 20, Policy(0.3)).status is Status.PASS
    assert screen(STEP_TIME, 1.2, [1.0] * 20, Policy(0.0, absolute=0.3)).status is Status.PASS


@pytest.mark.parametrize(
    ("value", "samples", "expected"),
    [
        (None, [1.0], Status.INVALID),
        (math.nan, [1.0], Status.INVALID),
        (math.inf, [], Status.INVALID),
        (1.0, [], Status.NO_BASELINE),
        (0.0, [0.0], Status.PASS),
        (2.0, [0.0], Status.REGRESSED),
        (1.0, [math.nan, 1.0], Status.INVALID),
    ],
)
def test_what_is_no_time_is_judged_as_any_value(value, samples, expected):
    assert screen(STEP_TIME, value, samples, FLOOR).status is expected


@given(times, times)
def test_recent_runs_tell_of_the_spread_and_never_move_the_center(samples, recent):
    alone, told = prediction_interval(samples), prediction_interval(samples, recent=recent)
    assert told.center == alone.center
    assert (told.runs, told.recent) == (len(samples), len(recent))


def test_steady_recent_runs_narrow_the_interval_wherever_they_lie():
    for level in (0.5, 1.0, 2.0):
        assert prediction_interval([1.0], recent=[level] * 10).high < prediction_interval([1.0]).high
    scattered = [1.0, 1.5] * 5
    assert prediction_interval([1.0], recent=scattered).high > prediction_interval([1.0]).high
    assert prediction_interval([1.0], recent=[0.0, -1.0]).recent == 0


def test_a_slowdown_is_ruled_out_only_by_a_value_that_it_would_hardly_give():
    """Of runs slower by exactly the floor, the screen alone clears no more than it promises."""
    runs = np.exp(np.random.Generator(np.random.PCG64(2)).normal(0, 0.03, (4000, 11)))
    for metric, sign in ((STEP_TIME, 1), (THROUGHPUT, -1)):
        cleared = [
            rules_out_regression(metric, value**sign, [sample**sign for sample in samples], FLOOR)
            for *samples, value in (runs * np.r_[np.ones(10), 1.05]).tolist()
        ]
        assert np.mean(cleared) <= 0.015
    assert rules_out_regression(STEP_TIME, 0.9, [1.0] * 10, FLOOR)
    for value, samples in ((None, [1.0]), (math.nan, [1.0]), (1.0, []), (1.0, [0.0])):
        assert not rules_out_regression(STEP_TIME, value, samples, FLOOR)
    assert rules_out_regression(STEP_TIME, 0.0, [0.0, 0.0], FLOOR)
