from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ScenarioError
from harness.schedule import Action, gpipe, interleaved, one_f_one_b, zero_bubble
from tests.schedule.shapes import micro_batches, schedules, stages


@given(schedules)
def test_every_micro_batch_goes_forward_and_backward_once_a_chunk(schedule):
    kinds = "FBW" if schedule.splits_backward else "FB"
    wanted = {
        Action(kind, m, c): 1 for kind in kinds for m in range(schedule.micro_batches) for c in range(schedule.chunks)
    }
    assert len(schedule.orders) == schedule.stages
    for order in schedule.orders:
        assert Counter(order) == wanted


@given(schedules)
def test_a_rank_keeps_its_own_dependencies(schedule):
    for rank, order in enumerate(schedule.orders):
        done = set()
        for action in order:
            assert all(needed in done for where, needed in schedule.needs(rank, action) if where == rank)
            done.add(action)


@given(schedules)
def test_parts_and_places_belong_together(schedule):
    for part in range(schedule.parts):
        assert schedule.part(*schedule.place(part)) == part


@given(stages, micro_batches)
def test_in_flight_micro_batches_are_as_the_literature_says(p, m):
    for rank in range(p):
        assert gpipe(p, m).in_flight(rank) == m
        assert one_f_one_b(p, m).in_flight(rank) == min(m, p - rank)
        # ZB-H1 holds no more anywhere than the first rank does under 1F1B.
        assert zero_bubble(p, m).in_flight(rank) <= one_f_one_b(p, m).in_flight(0)


@given(stages, st.integers(1, 4), st.integers(2, 4))
def test_interleaving_holds_chunks_as_the_literature_says(p, groups, v):
    """Warm-up, and one more: 2 (p - rank - 1) + (v - 1) p + 1 chunks, where there are so many."""
    schedule = interleaved(p, groups * p, v)
    for rank in range(p):
        assert schedule.in_flight(rank) == min(groups * p * v, 2 * (p - rank - 1) + (v - 1) * p + 1)


def test_the_orders_of_a_small_pipeline():
    def shown(schedule):
        return [" ".join(map(str, order)) for order in schedule.orders]

    assert shown(gpipe(2, 3)) == ["F0 F1 F2 B0 B1 B2"] * 2
    assert shown(one_f_one_b(2, 3)) == ["F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 F2 B2"]
    assert shown(zero_bubble(2, 3)) == ["F0 F1 B0 W0 F2 B1 W1 B2 W2", "F0 B0 F1 B1 W0 F2 B2 W1 W2"]
    assert shown(interleaved(2, 2, 2)) == ["F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1", "F0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1"]


@pytest.mark.parametrize("make", [gpipe, one_f_one_b, zero_bubble, lambda p, m: interleaved(p, m, 2)])
@pytest.mark.parametrize(
    ("p", "m", "message"),
    [(0, 1, "stages=0"), (1, 0, "micro_batches=0"), (1.5, 1, "stages=1.5"), (True, 1, "stages=True")],
)
def test_numbers_that_make_no_pipeline_are_refused(make, p, m, message):
    with pytest.raises(ScenarioError, match=f"{message} must be a whole number of at least 1"):
        make(p, m)


@pytest.mark.parametrize("chunks", [1, 0, 2.0, True])
def test_interleaving_needs_two_chunks(chunks):
    with pytest.raises(ScenarioError, match="interleaving needs at least two chunks a rank; use 1f1b for one"):
        interleaved(2, 2, chunks)
