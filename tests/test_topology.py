import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Layout
from harness.errors import HardwareError
from harness.topology import check_binding, numa_nodes, plan
from tests.strategies import layouts

NODES = [[0, 1, 2, 3], [4, 5, 6, 7]]


@given(layouts, st.integers(1, 40))
def test_ranks_have_cores_of_their_own_where_there_are_enough(layout, cores):
    found = plan(layout, [list(range(cores))])
    assert len(found) == layout.world_size
    assert all(found)
    assert len({len(own) for own in found}) == 1
    if layout.world_size <= cores:
        given_away = [core for own in found for core in own]
        assert len(given_away) == len(set(given_away))


def test_the_stages_of_one_pipeline_are_kept_together():
    """Two replicas of two stages of two shards: each replica stays on its node."""
    layout = Layout(dp=2, tp=2, pp=2)
    found = plan(layout, NODES)
    for rank, cores in enumerate(found):
        replica = layout.position(rank)[1]
        assert set(cores) <= set(NODES[replica])


def test_more_ranks_than_cores_share_them_evenly():
    assert plan(Layout(dp=4), [[5, 9]]) == [[5], [5], [9], [9]]


def test_nodes_are_read_from_the_system(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 8})
    for name, text in (("node0", "0-1,8\n"), ("node1", "2-3\n"), ("node10", "9\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpulist").write_text(text)
    assert numa_nodes(tmp_path) == [[0, 1, 8], [2]]
    assert numa_nodes(tmp_path / "nowhere") == [[0, 1, 2, 8]]


def test_a_binding_that_cannot_be_had_is_refused():
    assert check_binding("numa", NODES) == "numa"
    with pytest.raises(HardwareError, match="one NUMA node; use --bind core"):
        check_binding("numa", NODES[:1])
    with pytest.raises(HardwareError, match="binding 'socket' is unknown; choose from none, core, numa"):
        check_binding("socket", NODES)
