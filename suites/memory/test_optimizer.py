"""What the optimizer remembers."""

import pytest

from fixtures.scenarios import SHORT
from harness import Layout, cards, hardware, smoke, untimed

pytestmark = untimed


@smoke
@hardware("cpu", "gpu", "ascend")
def test_adam_keeps_twice_the_parameters(trainer, gate):
    """Feature: bytes of states, AdamW and SGD.

    Expectation: two float32 moments a parameter (Kingma & Ba 2015), and none.
    """
    adam, sgd = trainer.run(SHORT), trainer.run(SHORT.replace(optimizer="sgd", eval_sequences=0))
    assert adam["optimizer_memory"] == 2 * 4 * adam["parameters"] / 2**20
    assert sgd["optimizer_memory"] == 0
    gate.check(adam, only=["optimizer_memory", "parameters"])


@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_sharded_over_two_a_rank_keeps_half(trainer, gate):
    """Feature: optimizer sharding over data parallelism.

    Expectation: 1/n of the states (Rajbhandari et al. 2020, «ZeRO», stage 1), here up to half of one matrix, because
    parameters are given away whole.
    """
    layout = Layout(dp=2)
    plain = trainer.run(SHORT.replace(layout=layout))
    sharded = trainer.run(SHORT.replace(layout=Layout(dp=2, optimizer_sharding=True)))
    ratio = sharded["optimizer_memory"] / plain["optimizer_memory"]
    assert ratio == pytest.approx(1 / 2, abs=0.05)
    gate.check(sharded, only=["optimizer_memory"], ratios={"optimizer_memory_ratio": ratio})
