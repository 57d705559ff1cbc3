import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Layout
from harness.errors import ScenarioError
from tests.strategies import layouts


@given(layouts, st.sampled_from(["dp", "tp", "pp"]))
def test_groups_of_an_axis_hold_every_rank_once(layout, kind):
    groups = layout.groups(kind)
    assert sorted(rank for group in groups for rank in group) == list(range(layout.world_size))
    assert {len(group) for group in groups} == {getattr(layout, kind)}
    axis = {"pp": 0, "dp": 1, "tp": 2}[kind]
    for group in groups:
        others = {layout.position(rank)[:axis] + layout.position(rank)[axis + 1 :] for rank in group}
        assert len(others) == 1


@given(layouts)
def test_a_position_names_its_rank(layout):
    for rank in range(layout.world_size):
        assert layout.rank(*layout.position(rank)) == rank


def test_tensor_parallel_ranks_are_neighbours():
    layout = Layout(dp=2, tp=2, pp=2)
    assert layout.groups("tp") == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert layout.groups("dp") == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert layout.groups("pp") == [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dp": 0}, r"layout.dp must be a whole number of at least 1, not 0"),
        ({"tp": 1.5}, r"layout.tp must be a whole number"),
        ({"pp": True}, r"layout.pp must be a whole number"),
        ({"optimizer_sharding": True}, "nothing to shard over"),
    ],
)
def test_refuses_what_cannot_work(fields, message):
    with pytest.raises(ScenarioError, match=message):
        Layout(**fields)


def test_a_rank_outside_the_grid_is_refused():
    with pytest.raises(ScenarioError, match="rank 2 is outside a layout of 2 ranks"):
        Layout(dp=2).position(2)
