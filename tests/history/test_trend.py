import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history.trend import ANCHOR_RUNS, LEAST_RUNS, trend

values = st.lists(st.floats(0.01, 100), min_size=1, max_size=60)


def noisy(levels, spread=0.03, seed=0):
    noise = np.random.default_rng(seed).normal(0, spread, len(levels))
    return (np.asarray(levels) * np.exp(noise)).tolist()


def of(series, **options):
    """Anchored, unless told otherwise, to its own first runs."""
    return trend(series, **{"anchor": np.median(series[:ANCHOR_RUNS]), **options})


def test_unchanged_series_are_one_segment_and_do_not_drift():
    found = [of(noisy([1.0] * 100, seed=seed)) for seed in range(200)]
    assert sum(len(course.segments) > 1 for course in found) <= 2
    assert sum(course.drifted for course in found) <= 2


@pytest.mark.parametrize("factor", [1.1, 0.9])
def test_a_step_is_found_where_it_is(factor):
    course = of(noisy([1.0] * 40 + [factor] * 40))
    first, second = course.segments
    assert abs(second.start - 40) <= 2
    assert (first.change, first.start, second.end) == (0.0, 0, 80)
    assert second.change == pytest.approx(factor - 1, abs=0.02)
    assert course.drift == pytest.approx(factor - 1, abs=0.03)
    assert course.drifted


def test_a_slow_drift_of_many_small_steps_is_found_by_the_anchor():
    """Each of 60 runs is 0.2 % slower than the one before: no step is a change, the whole is 12 %."""
    found = [of(noisy(1.002 ** np.arange(60), spread=0.01, seed=seed)) for seed in range(50)]
    assert all(course.drifted and course.drift > 0.05 for course in found)
    assert all(course.anchor < 1.03 for course in found)


def test_the_approved_value_is_the_anchor_where_there_is_one():
    course = of(noisy([1.2] * 30), anchor=1.0)
    assert course.anchor == 1.0
    assert course.drifted
    assert not of(noisy([1.2] * 30), anchor=1.0, floor=0.3).drifted


def test_exact_series_show_the_smallest_change():
    course = of([5.0] * 10 + [5.001] * 10, floor=0.0)
    assert [segment.start for segment in course.segments] == [0, 10]
    assert course.drifted
    assert len(of([5.0] * 20).segments) == 1


def test_one_outlier_is_no_change():
    assert len(of([*noisy([1.0] * 30), 3.0, *noisy([1.0] * 30, seed=1)]).segments) == 1


@pytest.mark.parametrize("series", [[0.0] * 12, [0.0] * 6 + [1.0] * 6, [-1.0] * 12, [1e300] * 12, [5e-324] * 12])
def test_values_without_a_logarithm_divide_nothing(series):
    course = of(series)
    assert course.segments[0].center == series[0]
    assert not math.isnan(course.drift)


@given(values)
def test_segments_cover_all_runs_once(series):
    course = of(series)
    ends = [0, *(segment.end for segment in course.segments)]
    assert [segment.start for segment in course.segments] == ends[:-1]
    assert ends[-1] == len(series)
    assert all(s.end - s.start >= LEAST_RUNS for s in course.segments) or len(course.segments) == 1
    assert course.anchor == pytest.approx(np.median(series[:ANCHOR_RUNS]))


@given(values, st.floats(0.1, 10))
def test_the_unit_does_not_matter(series, factor):
    one, other = of(series), of([factor * value for value in series])
    assert other.drift == pytest.approx(one.drift, abs=1e-9)
