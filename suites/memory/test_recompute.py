"""Recomputation trades compute for memory and nothing else."""

import pytest

from fixtures.scenarios import DEEP, ORDERED
from harness import hardware, untimed


@hardware("cpu", "gpu", "ascend")
def test_recompute_trades_compute_for_memory(trainer, gate):
    """Feature: activations of every block are dropped in forward and computed again in backward.

    Expectation: the same operations on the same numbers give losses equal in every bit. Chen et al. 2016, «Training
    Deep Nets with Sublinear Memory Cost»: one more forward pass is a third of forward + backward, so at most 1.45 times
    the step time; memory falls to the blocks' inputs and one block's activations, of eight blocks at most 0.35.
    Memory is taken where operators keep the graph's order, time where they do not wait for it, which on CPU scatters
    far less. The two are timed one after the other, and once or twice more where a neighbour slowed one of them.
    """
    plain, remat = trainer.run(ORDERED), trainer.run(ORDERED.replace(recompute="full"))
    assert remat.curve("loss") == plain.curve("loss")
    assert remat.curve("grad_norm") == plain.curve("grad_norm")
    memory = remat["peak_memory"] / plain["peak_memory"]
    assert memory <= 0.35
    timed = [DEEP, DEEP.replace(recompute="full")]
    plain_time, remat_time = (trainer.run(scenario).typical_step_time for scenario in timed)
    prices = [remat_time / plain_time]
    while min(prices) > 1.45 and len(prices) < 3:
        plain_time, remat_time = (trainer.run(scenario, fresh=True).typical_step_time for scenario in timed)
        prices.append(remat_time / plain_time)
    assert min(prices) <= 1.45, prices
    gate.check(plain, label="plain", only=["loss", "grad_norm", "peak_memory"])
    gate.check(remat, label="recompute", only=["peak_memory"], ratios={"peak_memory_ratio": memory})


@untimed
@hardware("cpu", "gpu", "ascend")
def test_recomputing_the_middle_lies_between(trainer, gate):
    """Feature: the first and the last of eight blocks keep their activations, six compute them again.

    Expectation: losses equal in every bit. At the peak two blocks and the one at work are kept instead of eight: with
    the inputs of the others, three eighths and a little more.
    """
    plain, middle, full = (trainer.run(ORDERED.replace(recompute=which)) for which in ("none", "middle", "full"))
    assert middle.curve("loss") == plain.curve("loss")
    memory = middle["peak_memory"] / plain["peak_memory"]
    assert memory == pytest.approx(3 / 8, abs=0.1)
    assert full["peak_memory"] < middle["peak_memory"]
    gate.check(middle, only=["peak_memory"], ratios={"peak_memory_ratio": memory})


@untimed
@hardware("cpu")
def test_the_order_of_operators_decides_what_is_kept(trainer, gate):
    """Feature: the same graph, operators run as soon as they can instead of in the graph's order.

    Expectation: the same numbers to a rounding of sums, and more memory: gradients of weights may come after the whole
    backward, and what they need is kept until then.
    """
    ordered = trainer.run(ORDERED.replace(recompute="full"))
    ready = trainer.run(ORDERED.replace(recompute="full", execution_order="ready"))
    assert ready.curve("loss") == pytest.approx(ordered.curve("loss"), rel=1e-5)
    memory = ordered["peak_memory"] / ready["peak_memory"]
    assert memory < 0.8
    gate.check(ready, only=["peak_memory"], ratios={"peak_memory_ratio": memory})
