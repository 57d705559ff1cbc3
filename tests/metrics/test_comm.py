import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import Undefined
from harness.metrics.comm import exposed

times = st.integers(0, 100).map(float)
intervals = st.lists(st.tuples(times, times).map(lambda pair: (min(pair), max(pair))), max_size=12)


def test_known_answers():
    found = exposed(compute=[(2, 4)], communication=[(0, 10)])
    assert (found.total, found.overlapped, found.exposed, found.share) == (10, 2, 8, 0.8)
    union = exposed(compute=[], communication=[(0, 6), (4, 10)])
    assert (union.total, union.exposed, union.share) == (10, 10, 1.0)


def test_hidden_communication_costs_nothing():
    assert exposed([(0, 10)], [(2, 4), (3, 5)]).exposed == 0


@given(intervals, intervals)
def test_it_counts_as_clock_ticks_would(compute, communication):
    if not any(end > start for start, end in compute + communication):
        with pytest.raises(Undefined, match="without events"):
            exposed([(1, 1)], [])
        return
    ticks = [t + 0.5 for t in range(100)]
    talks = [any(a < t < b for a, b in communication) for t in ticks]
    works = [any(a < t < b for a, b in compute) for t in ticks]
    found = exposed(compute, communication)
    assert found.total == sum(talks)
    assert found.exposed == sum(talk and not work for talk, work in zip(talks, works, strict=True))
    assert found.overlapped + found.exposed == found.total
    assert 0 <= found.share <= 1


@given(intervals, intervals)
def test_order_and_doubling_do_not_matter(compute, communication):
    compute.append((0.0, 1.0))
    once = exposed(compute, communication)
    assert exposed(compute[::-1] + compute, communication + communication[::-1]) == once


def test_what_is_no_interval_is_refused():
    with pytest.raises(ValueError, match="ends before it starts"):
        exposed([(2, 1)], [])
    with pytest.raises(ValueError, match="ends before it starts"):
        exposed([], [(float("nan"), 1)])
    with pytest.raises(Undefined):
        exposed([], [])
