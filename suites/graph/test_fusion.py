"""Operators that are fused, by MindSpore's compiler or by hand."""

import pytest

from fixtures.scenarios import SHORT
from harness import Scenario, hardware, untimed
from harness.errors import LaunchError

ALONE = Scenario(steps=5, batch=64, learning_rate=1e-4, eval_sequences=0, weight_decay=0.0, execution_order="graph")
"""Layers of 64 × 128 × 512 values, and little else, operator after operator as on devices. From the sixth step on,
MindSpore spreads operators over CPU's cores, which hides what the many cost."""


@hardware("cpu", "gpu", "ascend")
@pytest.mark.nightly
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
    fused, spelled = (trainer.run(scenario) for scenario in pair("norms"))
    assert spelled.curve("loss") == pytest.approx(fused.curve("loss"), rel=1e-4)
    assert gain(trainer, "norms") >= 1.3


@hardware("ascend")
@pytest.mark.parametrize("kind", ["rms_norms", "attention"])
def test_fused_operators_of_ascend_are_faster_than_the_same_spelled_out(trainer, kind):
    """Feature: four RMSNorms, or causal attention of two layers, as one operator each and spelled out.

    Expectation: as of LayerNorm; attention's scores are never written to memory, so it takes less of that too.
    """
    fused, spelled = (trainer.run(scenario) for scenario in pair(kind))
    assert spelled.curve("loss") == pytest.approx(fused.curve("loss"), rel=1e-3)
    assert gain(trainer, kind) >= 1.3
    if kind == "attention":
        assert fused["peak_memory"] < spelled["peak_memory"]


@untimed
@hardware("cpu")
@pytest.mark.parametrize("kind", ["rms_norms", "attention"])
def test_what_has_no_kernel_on_cpu_still_has_none(trainer, kind):
    """Feature: the operators that only Ascend has a kernel for, and their spelled-out twins.

    Expectation: the twins train; MindSpore 2.10 refuses the others. The day one is not refused, the claim above holds
    for CPU too.
    """
    fused, spelled = pair(kind)
    assert trainer.run(spelled.replace(steps=3)).curves["loss"]
    with pytest.raises(LaunchError, match=r"Unsupported op \[(RmsNorm|FlashAttentionScore)\] on CPU"):
        trainer.run(fused.replace(steps=3))


def pair(kind):
    """A model of fused operators, and the same arithmetic spelled out."""
    return tuple(ALONE.replace(model=f"fixtures.models:{way}_{kind}") for way in ("fused", "spelled"))


def gain(trainer, kind):
    """How many times as long the spelled-out one takes, at best of three; a neighbour on the machine may slow one."""
    gains = []
    while not gains or (max(gains) < 1.3 and len(gains) < 3):
        times = [trainer.run(scenario, fresh=bool(gains)).typical_step_time for scenario in pair(kind)]
        gains.append(times[1] / times[0])
    return max(gains)
