"""Data-parallel ranks train the model that one process would."""

import pytest

from fixtures.scenarios import SHORT
from harness import Layout, cards, hardware, smoke, untimed


@smoke
@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_two_ranks_equal_one_process(trainer, gate):
    """Feature: rows of the batch over two ranks, sums reduced in one AllReduce, clipping after the reduction.

    Expectation: the reduced sums are those of the whole batch up to float32 order, so loss, global norm (clipped at 1,
    which these steps exceed) and update are those of one process; and both ranks end with the same parameters.
    """
    single = trainer.run(SHORT)
    both = trainer.run(SHORT.replace(layout=Layout(dp=2)))
    assert max(single.curve("grad_norm")) > 1.0
    assert both.curve("loss") == pytest.approx(single.curve("loss"), rel=1e-5)
    assert both.curve("grad_norm") == pytest.approx(single.curve("grad_norm"), rel=1e-4)
    assert both.curve("update_norm") == pytest.approx(single.curve("update_norm"), rel=1e-4)
    assert both["validation_perplexity"] == pytest.approx(single["validation_perplexity"], rel=1e-5)
    assert both.parameter_distance(single) < 1e-3
    assert both["diverged_replicas"] == 0
    gate.check(both, only=["loss", "grad_norm", "update_norm", "diverged_replicas", "peak_memory", "throughput"])


@untimed
@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_sharded_optimizer_equals_one_process(trainer, gate):
    """Feature: each rank keeps the Adam moments of its own parameters, updates those, and is sent the others.

    Expectation: where the moments are kept changes no number. Adam keeps 8 bytes, two float32, a parameter; of two
    ranks, each keeps half, up to one parameter, since none is split (Rajbhandari et al. 2020, «ZeRO», stage 1).
    """
    single = trainer.run(SHORT)
    sharded = trainer.run(SHORT.replace(layout=Layout(dp=2, optimizer_sharding=True)))
    assert sharded.curve("loss") == pytest.approx(single.curve("loss"), rel=1e-5)
    assert sharded.curve("grad_norm") == pytest.approx(single.curve("grad_norm"), rel=1e-4)
    assert sharded.curve("update_norm") == pytest.approx(single.curve("update_norm"), rel=1e-4)
    assert sharded.parameter_distance(single) < 1e-3
    assert sharded["diverged_replicas"] == 0
    assert single["optimizer_memory"] == 8 * single["parameters"] / 2**20
    assert sharded["optimizer_memory"] == pytest.approx(single["optimizer_memory"] / 2, rel=0.02)
    gate.check(sharded, only=["loss", "grad_norm", "update_norm", "diverged_replicas", "optimizer_memory"])


@untimed
@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_fused_reduction_saves_calls_and_nothing_else(trainer, gate):
    """Feature: all gradients in one AllReduce, or each in one of its own.

    Expectation: a sum over two ranks has one order, so every number is the same in every bit. Fused, a step makes one
    call; unfused, one for loss and token count and one for each of nano's 21 parameters (2 blocks of 9, embedding, last
    norm, head). The bytes are the same, four for each parameter and each of the two.
    """
    fused = trainer.run(SHORT.replace(layout=Layout(dp=2)))
    unfused = trainer.run(SHORT.replace(layout=Layout(dp=2), fused_reduction=False, eval_sequences=0))
    for name in ("loss", "grad_norm", "update_norm"):
        assert unfused.curve(name) == fused.curve(name)
    assert (fused["communication_calls"], unfused["communication_calls"]) == (1, 1 + 21)
    assert fused["communication_volume"] == unfused["communication_volume"] == 4 * (fused["parameters"] + 2) / 2**20
    gate.check(unfused, only=["loss", "communication_calls", "communication_volume"])
