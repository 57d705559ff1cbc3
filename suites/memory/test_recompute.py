"""Recomputation trades compute for memory and nothing else."""

from fixtures.scenarios import DEEP
from harness import hardware


@hardware("cpu", "gpu", "ascend")
def test_recompute_trades_compute_for_memory(trainer, gate):
    """Feature: activations of every block are dropped in forward and computed again in backward.

    Expectation: the same operations on the same numbers give losses equal in every bit. Chen et al. 2016, «Training
    Deep Nets with Sublinear Memory Cost»: one more forward pass is a third of forward + backward, so at most 1.6 times
    the step time with room for noise; memory falls to the blocks' inputs and one block's activations, under a half.
    The two are timed one after the other, and once or twice more where a neighbour on the machine slowed one of them.
    """
    plain, remat = trainer.run(DEEP), trainer.run(DEEP.replace(recompute="full"))
    assert remat.curve("loss") == plain.curve("loss")
    assert remat.curve("grad_norm") == plain.curve("grad_norm")
    memory = remat["peak_memory"] / plain["peak_memory"]
    assert memory < 0.5
    prices = [remat.typical_step_time / plain.typical_step_time]
    while min(prices) >= 1.6 and len(prices) < 3:
        again = [trainer.run(DEEP.replace(recompute=which), fresh=True).typical_step_time for which in ("none", "full")]
        prices.append(again[1] / again[0])
    assert min(prices) < 1.6, prices
    gate.check(plain, label="plain", only=["loss", "grad_norm", "peak_memory"])
    gate.check(remat, label="recompute", only=["peak_memory"], ratios={"peak_memory_ratio": memory})
