"""MindSpore's own graph parallelism trains what this project's trainer does; CPU has no such engine."""

import pytest

from fixtures.scenarios import GRAPH, SEED_13B
from harness import Layout, cards, hardware

TWO = {
    "dp2": GRAPH.replace(layout=Layout(dp=2, optimizer_sharding=True)),
    "tp2": GRAPH.replace(layout=Layout(tp=2)),
    "pp2": GRAPH.replace(layout=Layout(pp=2), micro_batches=4),
    "searched": GRAPH.replace(layout=Layout(dp=2), engine="recursive_programming"),
}

EIGHT = GRAPH.replace(
    model="tiny", layout=Layout(dp=2, tp=2, pp=2, optimizer_sharding=True), micro_batches=4, recompute="full"
)


def assert_trains_like_the_explicit_engine(trainer, scenario):
    """The same initial values, data, sums and update rule: losses and norms differ by the order of sums."""
    alone = trainer.run(scenario.replace(engine="explicit", layout=Layout(), micro_batches=1, recompute="none"))
    run = trainer.run(scenario)
    assert run.curve("loss") == pytest.approx(alone.curve("loss"), rel=1e-4)
    assert run.curve("grad_norm") == pytest.approx(alone.curve("grad_norm"), rel=1e-3)
    return run


@hardware("gpu", "ascend")
@pytest.mark.parametrize("layout", TWO)
@cards(2)
def test_two_devices_train_what_one_does(trainer, gate, layout):
    """Feature: one layout of AutoParallel on two devices, searched strategies among them.

    Expectation: losses and norms of one device.
    """
    gate.check(assert_trains_like_the_explicit_engine(trainer, TWO[layout]), only=["loss", "grad_norm", "step_time"])


@hardware("gpu", "ascend")
@cards(8)
def test_eight_devices_train_what_one_does(trainer, gate):
    """Feature: data, tensor and pipeline parallelism with a sharded optimizer and recomputation.

    Expectation: losses and norms of one device.
    """
    run = assert_trains_like_the_explicit_engine(trainer, EIGHT)
    gate.check(run, only=["loss", "grad_norm", "peak_memory", "step_time"])


@hardware("gpu", "ascend")
@cards(32)
def test_13b_trains_on_32_devices(trainer, gate):
    """Feature: 13 billion parameters on 32 devices in four stages, two replicas, four shards, sharded optimizer.

    Expectation: it fits, its loss falls from about ln 32 000 = 10.4, and it stays on its approved curve and speed.
    """
    run = trainer.run(SEED_13B)
    loss = run.curve("loss")
    assert loss[-1] < loss[0] < 11
    gate.check(run, only=["loss", "grad_norm", "peak_memory", "throughput"])
