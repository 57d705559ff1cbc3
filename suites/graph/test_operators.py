"""What a step calls, counted by MindSpore's profiler."""

from fixtures.scenarios import SHORT
from harness import hardware, untimed

pytestmark = untimed

PROFILED = SHORT.replace(profiled_steps=2, eval_sequences=0)


@hardware("cpu", "gpu", "ascend")
def test_half_precision_costs_casts(trainer, gate):
    """Feature: operators of a step, float32 and float16.

    Expectation: in float32 hardly anything is cast. In float16, both inputs of each product are cast down and the
    result up again: seven products a block, two of attention, and the head, forward and backward.
    """
    single, half = trainer.run(PROFILED), trainer.run(PROFILED.replace(precision="float16"))
    products = 2 * (7 + 2) + 1
    assert single["cast_calls"] <= 4
    assert half["cast_calls"] - single["cast_calls"] >= 3 * products
    gate.check(half, only=["operator_calls", "cast_calls", "transpose_calls"])


@hardware("cpu", "gpu", "ascend")
def test_accumulation_repeats_the_gradients_and_not_the_update(trainer):
    """Feature: operators of a step, one part and two.

    Expectation: gradients are computed twice and added once, parameters updated once: more calls, and less than twice
    as many.
    """
    one, two = trainer.run(PROFILED), trainer.run(PROFILED.replace(accumulation=2))
    assert 1.3 < two["operator_calls"] / one["operator_calls"] < 2
    updates = [sum(o.calls for o in run.operators if o.kind == "AdamWeightDecay") for run in (one, two)]
    assert updates[0] == updates[1] > 0
