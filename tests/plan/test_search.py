"""Which layouts fit."""

import time

import pytest

from fixtures.scenarios import SEED_13B
from harness import Layout, Scenario
from harness.errors import PlanError
from harness.plan import Profile, plan, search

ASCEND = Profile.read("ascend-910b")
LARGE = SEED_13B.replace(batch=2048, sequence=4096)


def test_a_thousand_devices_take_under_two_seconds():
    start = time.monotonic()
    found = search(LARGE, ASCEND, 1024)
    assert time.monotonic() - start < 2
    assert len(found) > 10
    assert all(each.scenario.layout.world_size == 1024 for each in found)


def test_what_is_found_fits_and_the_fastest_is_first():
    found = search(SEED_13B, ASCEND, 32)
    assert all(each.fullest.total <= ASCEND.memory * 2**30 for each in found)
    times = [each.cost.step_time for each in found]
    assert times == sorted(times)
    assert all(each.scenario.layout.tp <= ASCEND.node_devices for each in found)
    assert any(each.scenario.layout == SEED_13B.layout for each in found)


def test_tensor_parallelism_stays_within_a_node():
    pairs = ASCEND.model_copy(update={"node_devices": 2})
    assert {each.scenario.layout.tp for each in search(SEED_13B, pairs, 32)} == {1, 2}


def test_more_memory_never_makes_the_best_layout_slower():
    twice = ASCEND.model_copy(update={"memory": 2 * ASCEND.memory})
    assert search(SEED_13B, twice, 32)[0].cost.step_time <= search(SEED_13B, ASCEND, 32)[0].cost.step_time


def test_where_nothing_fits_the_nearest_says_what_it_lacks():
    with pytest.raises(
        PlanError, match=r"no layout of 2 devices fits into 64 GiB: dp \d × .* lacks \d+\.\d GiB a device"
    ):
        search(SEED_13B, ASCEND, 2)


def test_devices_that_divide_nothing_are_refused():
    with pytest.raises(PlanError, match="no layout of 37 devices divides"):
        search(Scenario(model="7b", batch=8, eval_sequences=0), ASCEND, 37)


def test_what_a_layout_lacks():
    found = plan(Scenario(model="13b", batch=8, layout=Layout(), eval_sequences=0), ASCEND)
    assert found.missing == pytest.approx(found.needed - 64)
    assert found.missing > 100
