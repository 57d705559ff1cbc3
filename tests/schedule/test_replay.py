import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.schedule import Action, bubble_ratio, draw, gpipe, interleaved, one_f_one_b, replay, zero_bubble
from tests.schedule.shapes import micro_batches, schedules, stages


@pytest.mark.parametrize(
    ("p", "m", "v", "makespan", "of_total", "of_ideal"),
    [
        (4, 8, 1, 33, "3/11", "3/8"),
        (4, 16, 1, 57, "3/19", "3/16"),
        (4, 8, 2, 28.5, "3/19", "3/16"),
        (4, 1, 1, 12, "3/4", "3"),
        (1, 8, 1, 24, "0", "0"),
    ],
)
def test_known_answers(p, m, v, makespan, of_total, of_ideal):
    made = [interleaved(p, m, v)] if v > 1 else [one_f_one_b(p, m), gpipe(p, m)]
    for schedule in made:
        timeline = replay(schedule)
        assert timeline.makespan == makespan
        assert Fraction(timeline.bubble_ratio).limit_denominator(1000) == Fraction(of_total)
        ideal = max(timeline.busy)
        assert Fraction(timeline.makespan / ideal - 1).limit_denominator(1000) == Fraction(of_ideal)
    assert bubble_ratio(p, m, v) == pytest.approx(float(Fraction(of_total)))


@given(stages, micro_batches, st.floats(0.1, 10), st.floats(0.1, 10))
def test_gpipe_and_1f1b_are_the_closed_form(p, m, forward, backward):
    for make in (gpipe, one_f_one_b):
        timeline = replay(make(p, m), forward, backward)
        assert timeline.bubble_ratio == pytest.approx(bubble_ratio(p, m), abs=1e-9)
        assert timeline.makespan == pytest.approx((m + p - 1) * (forward + backward))


@given(stages, st.integers(1, 4), st.integers(2, 4))
def test_interleaving_is_the_closed_form_for_whole_groups(p, groups, v):
    assert replay(interleaved(p, groups * p, v)).bubble_ratio == pytest.approx(bubble_ratio(p, groups * p, v), abs=1e-9)


@given(stages, micro_batches)
def test_zero_bubble_is_the_closed_form(p, m):
    """Qi et al. 2023: with equal times, p - 1 of them are idle; with few micro-batches, the way through decides."""
    timeline = replay(zero_bubble(p, m), forward=1, backward=2, weights=0.5)
    assert timeline.makespan == pytest.approx(max(3 * m + p - 1, 2 * p + 2 * m - 1))
    assert timeline.makespan <= replay(one_f_one_b(p, m)).makespan


@given(schedules, st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0, 1))
def test_every_timeline_is_possible(schedule, forward, backward, send):
    timeline = replay(schedule, forward, backward, send)
    ends = {(rank, span.action): span.end for rank, spans in enumerate(timeline.spans) for span in spans}
    for rank, spans in enumerate(timeline.spans):
        assert tuple(span.action for span in spans) == schedule.orders[rank]
        assert all(a.end <= b.start + 1e-9 for a, b in itertools.pairwise(spans))
        for span in spans:
            for where, needed in schedule.needs(rank, span.action):
                assert ends[where, needed] + (send if where != rank else 0) <= span.start + 1e-9
    assert timeline.busy == pytest.approx([schedule.micro_batches * (forward + backward)] * schedule.stages)
    assert -1e-9 <= timeline.bubble_ratio < 1
    assert sum(timeline.idle) / schedule.stages == pytest.approx(timeline.bubble_ratio)


@given(schedules, st.floats(0.1, 10))
def test_the_unit_of_time_does_not_matter(schedule, factor):
    one, other = replay(schedule, 1, 2, 0.5), replay(schedule, factor, 2 * factor, 0.5 * factor)
    assert other.makespan == pytest.approx(factor * one.makespan)


@given(st.integers(2, 6), st.integers(1, 10))
def test_more_micro_batches_lower_the_bubble_and_sends_raise_it(p, m):
    assert replay(one_f_one_b(p, 2 * m)).bubble_ratio < replay(one_f_one_b(p, m)).bubble_ratio
    assert replay(one_f_one_b(p, m), send=0.5).bubble_ratio > replay(one_f_one_b(p, m)).bubble_ratio


def test_measured_durations_take_the_place_of_the_formula():
    slow_last = replay(one_f_one_b(2, 8), duration=lambda rank, action: 3.0 if rank else 1.0)
    assert slow_last.idle[0] > 0.6
    assert slow_last.idle[1] < 0.1
    assert slow_last.spans[0][0].action == Action("F", 0)


def test_drawing():
    lines = draw(replay(one_f_one_b(2, 2)), width=27).splitlines()
    assert lines == ["  0 F0▒F1▒······B0████···B1████", "  1 ···F0▒B0████F1▒B1████······"]
