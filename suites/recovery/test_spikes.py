"""A training that goes bad stops at the step, with the evidence; what lay beneath is named."""

import pytest

from fixtures.scenarios import SHORT
from harness import Checkpoints, Guard, Layout, cards, hardware, untimed
from harness.checkpoints.store import Store
from harness.errors import LaunchError

pytestmark = untimed

WATCHED = SHORT.replace(
    steps=56,
    learning_rate=5e-3,
    eval_sequences=0,
    guard=Guard(policy="stop", consecutive=1),
    checkpoints=Checkpoints(every=28),
)
FAULTS = {
    "bad_batch": (r"loss is \d", "data: of 8 rows 8 broken encoding; positions in the training split: "),
    "exploding_gradient": (
        r"grad_norm is \d{4}",
        "gradients: the gradient of 'blocks.1.attention_norm.weight' on rank 0",
    ),
    "nan": ("loss is nan", "parameters: 'head.weight' on rank 0 was not finite before the update"),
}
"""What is planted at step 50 → what the guard sees, and what triage names."""


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_spike_ends_the_training_and_its_cause_is_named(trainer, fault):
    """Feature: bytes that are no text, one layer's gradient a million times as large, a weight that is no number.

    Expectation: training ends at that step, before its update; the training as it was is saved; the report names the
    data with their positions, the gradients with the layer, or the parameters with the tensor.
    """
    seen, named = FAULTS[fault]
    with pytest.raises(LaunchError, match=rf"error: step 50: {seen}.*the guard ends the training") as caught:
        trainer.run(WATCHED, fault=f"{fault}=50")
    assert f"step 50: triage names {named}" in str(caught.value)
    report = trainer.folder / "triage" / "step-00000050"
    assert {"report.md", "plot.svg", "rank-0.json"} <= {path.name for path in report.iterdir()}
    assert 49 in Store(trainer.checkpoints).steps()
    # What is not finite is kept as evidence, and never gone on from.
    assert Store(trainer.checkpoints).newest()[0].step == (28 if fault == "nan" else 49)


@hardware("cpu", "gpu", "ascend")
def test_a_spike_may_be_left_out(trainer, gate):
    """Feature: the same bad batch, whose update is left out; and a healthy training under the same guard.

    Expectation: one update is missing, and told; loss goes on as if the batch had not been. The healthy training is
    that without a guard, bit for bit.
    """
    skipping = WATCHED.replace(guard=Guard(policy="skip"))
    with pytest.warns(UserWarning, match=r"step 50: loss is .* its update was left out"):
        spiky = trainer.run(skipping, fault="bad_batch=50")
    healthy = trainer.run(skipping)
    assert spiky["skipped_updates"] == 1
    assert spiky.curve("update_norm")[49] == 0
    assert spiky.curve("loss")[:49] == healthy.curve("loss")[:49]
    assert spiky.curve("loss")[50:] == pytest.approx(healthy.curve("loss")[50:], rel=0.05)
    assert healthy.curve("loss") == trainer.run(skipping.replace(guard=Guard())).curve("loss")
    # By step 56 this rate makes much of rounding: the norm parts by 2 % between vector widths, the loss by 1e-4.
    sensitivity = {"loss": {"relative": 1e-3}, "grad_norm": {"relative": 0.1}}
    gate.check(healthy, only=["loss", "grad_norm", "skipped_updates"], policy=sensitivity)


@hardware("cpu", "gpu", "ascend")
def test_what_the_guard_saves_is_the_training_as_it_was(trainer):
    """Feature: a model that draws random numbers in forward, ended by the guard, resumed without the fault.

    Expectation: the batch is seen again with the same random numbers: everything is equal to a training without fault.
    """
    shorter = {"steps": 16, "checkpoints": Checkpoints(every=16)}
    scenario = WATCHED.replace(model="fixtures.models:dropping", mode="pynative", **shorter)
    with pytest.raises(LaunchError, match="error: step 14: "):
        trainer.run(scenario, fault="exploding_gradient=14")
    resumed = trainer.run(scenario, resume=trainer.checkpoints)
    assert resumed.resumed_from == 13
    whole = trainer.run(scenario)
    assert resumed.curve("loss") == whole.curve("loss")
    assert resumed.weights == whole.weights


@hardware("cpu", "gpu", "ascend")
@cards(2)
@pytest.mark.nightly
def test_replicas_that_differ_stop_together(trainer):
    """Feature: on one of two replicas a reduced gradient is a million times as large at one step.

    Expectation: that rank sees the spike and both act on it, so nobody waits for the other; its layer is named.
    """
    scenario = WATCHED.replace(steps=30, layout=Layout(dp=2), checkpoints=Checkpoints(every=30))
    with pytest.raises(LaunchError, match=r"error: step 20: .*the guard ends the training"):
        trainer.run(scenario, fault="exploding_gradient=20")
    report = trainer.folder / "triage" / "step-00000020" / "report.md"
    assert "makes up 100.0% of the norm" in report.read_text()
    assert "on rank 1" in report.read_text()


@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_two_ranks_stop_together(trainer):
    """Feature: a weight that is no number on both of two stages' last, and a guard on both.

    Expectation: both end at the same step, both leave their evidence, and one report names the tensor and its rank.
    """
    scenario = WATCHED.replace(steps=12, layout=Layout(pp=2), micro_batches=2, checkpoints=Checkpoints(every=4))
    with pytest.raises(LaunchError) as caught:
        trainer.run(scenario, fault="nan=7")
    assert "step 7: triage names parameters: " in str(caught.value)
    names = {path.name for path in (trainer.folder / "triage" / "step-00000007").iterdir()}
    assert {"rank-0.json", "rank-1.json"} <= names
    assert Store(trainer.checkpoints).newest()[0].step == 4
