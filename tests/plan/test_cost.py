"""How long a step would take, by arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Layout, Scenario
from harness.metrics.speed import step_flops
from harness.models import PRESETS
from harness.plan import Profile, cost, memory, ring_time

DEVICE = Profile(
    name="made up", flops=1e14, memory=64, node_devices=8, node_bandwidth=1e11, network_bandwidth=1e10, latency=0.0
)
SEVEN = Scenario(model="7b", batch=8, sequence=2048, layout=Layout(dp=8), eval_sequences=0)


def test_seven_billion_parameters_on_eight_devices_communicate_for_two_fifths():
    """1.2 s of computing and an AllReduce of 0.8 s that nothing hides: 0.8 / 2.0."""
    flops = step_flops(PRESETS["7b"], 8, 2048) / 8 / 1.2
    bandwidth = 2 * 7 / 8 * memory(SEVEN, 0).parameters / 0.8
    found = cost(SEVEN, DEVICE.model_copy(update={"flops": flops, "node_bandwidth": bandwidth}))
    assert found.compute == pytest.approx(1.2)
    assert found.exposed == pytest.approx(0.8)
    assert found.communication_share == pytest.approx(0.40)
    assert found.throughput == pytest.approx(8 * 2048 / 2.0)


def test_mindspores_own_engine_hides_a_reduction_behind_backward():
    """All of it, where two thirds of the computing take longer."""
    explicit, own = cost(SEVEN, DEVICE), cost(SEVEN.replace(engine="semi_auto"), DEVICE)
    assert explicit.exposed > 0
    assert own.exposed == 0
    assert own.step_time == pytest.approx(explicit.step_time - explicit.exposed)


@given(st.integers(2, 64), st.floats(1, 1e9))
def test_a_ring_sends_every_byte_nearly_twice(ranks, size):
    """And a gather once: each rank has one of its own already."""
    assert ring_time("AllReduce", size, ranks, 1.0, 0.0) == pytest.approx(2 * size * (ranks - 1) / ranks)
    assert ring_time("AllGather", size, ranks, 1.0, 0.0) == pytest.approx(size * (ranks - 1) / ranks)
    assert ring_time("AllReduce", size, ranks, 1.0, 1.0) == pytest.approx(
        2 * (ranks - 1) + 2 * size * (ranks - 1) / ranks
    )


def test_a_group_that_spans_nodes_goes_over_the_network():
    inside = cost(SEVEN, DEVICE).exposed
    outside = cost(SEVEN, DEVICE.model_copy(update={"node_devices": 4})).exposed
    assert outside == pytest.approx(10 * inside)


@pytest.mark.parametrize(("micro_batches", "bubble"), [(8, 3 / 11), (16, 3 / 19)])
def test_a_pipeline_waits_as_the_formula_says(micro_batches, bubble):
    scenario = Scenario(model="7b", batch=16, layout=Layout(pp=4), micro_batches=micro_batches, eval_sequences=0)
    found = cost(scenario, DEVICE)
    assert found.bubble_ratio == pytest.approx(bubble)
    assert found.step_time == pytest.approx((found.compute + found.exposed) / (1 - bubble))


def test_recomputing_costs_a_forward_pass_of_the_blocks():
    """A third more of all but the head."""
    plain, again = cost(SEVEN, DEVICE), cost(SEVEN.replace(recompute="full"), DEVICE)
    head = 6 * 2048 * 4096 * 32000 / DEVICE.flops
    assert again.compute - plain.compute == pytest.approx((plain.compute - head) / 3)


def test_twice_the_devices_halve_the_computing():
    for layout in (Layout(dp=2), Layout(tp=2)):
        assert cost(SEVEN.replace(layout=layout), DEVICE).compute == pytest.approx(
            cost(SEVEN.replace(layout=Layout()), DEVICE).compute / 2
        )


@pytest.mark.parametrize(
    ("changes", "sums"),
    [
        ({}, 5 + 5),
        ({"accumulation": 4}, 4 * (5 + 5)),
        ({"recompute": "full"}, 5 + 5 + 2),
        ({"layout": Layout(tp=2, pp=2)}, 3 + 2 + 2),
        ({"layout": Layout(tp=2, pp=2), "engine": "semi_auto"}, 3 + 2),
        ({"layout": Layout(tp=2, pp=2), "pipeline_schedule": "zero_bubble"}, 3 * 2 + 2 * 3),
    ],
)
def test_sums_over_shards_are_counted_by_hand(changes, sums):
    """Two blocks. A stage of ours goes forward twice, then without its last sum; zero bubble's last stage, thrice."""
    scenario = Scenario(model="nano", batch=8, layout=Layout(tp=2), eval_sequences=0).replace(**changes)
    (found,) = (each for each in cost(scenario, DEVICE).traffic if each.purpose == "tensor parallel")
    assert found.calls == sums


@pytest.mark.parametrize(("stages", "chunks", "messages"), [(2, 1, 8), (4, 1, 16), (2, 2, 24), (4, 2, 32)])
def test_the_busiest_stage_sends_forward_and_back(stages, chunks, messages):
    """Eight micro-batches; between two stages, each end lacks one direction."""
    schedule = "interleaved" if chunks > 1 else "1f1b"
    changes = {"micro_batches": 8, "chunks": chunks, "pipeline_schedule": schedule, "layout": Layout(pp=stages)}
    (found,) = cost(Scenario(model="deep", batch=8, eval_sequences=0, **changes), DEVICE).traffic
    assert (found.kind, found.calls) == ("Send", messages)


@pytest.mark.parametrize(("model", "stages", "tables"), [("tiny", 2, 0), ("tiny-tied", 1, 0), ("tiny-tied", 2, 1)])
def test_the_ends_of_a_pipeline_reduce_a_tied_table(model, stages, tables):
    scenario = Scenario(model=model, batch=8, layout=Layout(pp=stages), eval_sequences=0)
    found = [each.bytes for each in cost(scenario, DEVICE).traffic if each.purpose == "tied embedding"]
    assert found == [4 * 256 * 128] * tables
