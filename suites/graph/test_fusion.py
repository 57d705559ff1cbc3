"""Operators that are fused, by MindSpore's compiler or by hand."""

import pytest

from fixtures.scenarios import SHORT
from harness import Scenario, hardware

NORMS = Scenario(steps=5, batch=64, learning_rate=1e-4, eval_sequences=0, weight_decay=0.0, execution_order="graph")
"""Norms of 64 × 128 × 512 values, and little else, operator after operator as on devices. From the sixth step on,
MindSpore spreads operators over CPU's cores, which hides what the many cost."""


@hardware("cpu", "gpu", "ascend")
def test_graph_kernels_call_fewer_operators(trainer, gate):
    """Feature: graph-kernel fusion on against off: numbers, operators of a step, compile time.

    Expectation: fused kernels round elsewhere, so losses part by 1e-4 at most. Chains of small operators become one, so
    a step calls fewer; compiling takes longer. Whether a step gets faster depends on the sizes, so nothing is claimed
    of it (docs/optimisations.md).
    """
    plain = trainer.run(SHORT.replace(profiled_steps=2))
    fused = trainer.run(SHORT.replace(profiled_steps=2, graph_kernel=True))
    assert fused.curve("loss") == pytest.approx(plain.curve("loss"), rel=1e-4)
    assert fused.curve("grad_norm") == pytest.approx(plain.curve("grad_norm"), rel=1e-3)
    assert fused["operator_calls"] < 0.9 * plain["operator_calls"]
    assert fused["compile_time"] > plain["compile_time"]
    gate.check(plain, label="plain", only=["operator_calls", "cast_calls", "transpose_calls"])
    # What the compiler fuses may depend on the processor.
    gate.check(fused, label="fused", only=["operator_calls"], policy={"operator_calls": {"relative": 0.1}})


@hardware("cpu", "gpu", "ascend")
def test_a_fused_norm_is_faster_than_the_same_spelled_out(trainer):
    """Feature: four LayerNorms forward and backward, ``nn.LayerNorm`` against mean, variance and scaling as operators.

    Expectation: the same numbers to rounding. Spelled out, every operator reads and writes all values again, some ten
    times forward, where the fused one reads them twice: at least 1.3 times as long. The two are timed one after the
    other, and once or twice more where a neighbour on the machine slowed one of them.
    """
    scenarios = [NORMS.replace(model=f"fixtures.models:{kind}_norms") for kind in ("fused", "spelled")]
    fused, spelled = (trainer.run(scenario) for scenario in scenarios)
    assert spelled.curve("loss") == pytest.approx(fused.curve("loss"), rel=1e-4)
    gains = [spelled.typical_step_time / fused.typical_step_time]
    while max(gains) < 1.3 and len(gains) < 3:
        again = [trainer.run(scenario, fresh=True).typical_step_time for scenario in scenarios]
        gains.append(again[1] / again[0])
    assert max(gains) >= 1.3, gains
