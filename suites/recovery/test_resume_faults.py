"""A training that is resumed wrongly goes on all the same, and its loss falls: each fault turns its own metric red."""

from fixtures.judging import caught, first_steps
from fixtures.scenarios import SHORT
from harness import Checkpoints, hardware, smoke, untimed

pytestmark = untimed

SCENARIO = SHORT.replace(
    model="fixtures.models:dropping", mode="pynative", learning_rate=1e-2, checkpoints=Checkpoints(every=5)
)
"""Draws random numbers at each step."""

CURVES = ["batch_checksum", "learning_rate", "loss", "grad_norm", "update_norm"]
DATA = ["batch_checksum", "loss"]
FAULTS = {
    "dropped_moments": {"update_norm": 6, "loss": 7},
    "reset_rate": {"learning_rate": 6, "update_norm": 6, "loss": 7},
    "replayed_data": {"batch_checksum": 6, "loss": 6},
    "skipped_data": {"batch_checksum": 6, "loss": 6},
    "lost_random_state": {"loss": 6, "grad_norm": 6},
}
"""What is planted → curves that must leave the healthy ones, and the first step that shows it."""

UNTOUCHED = {
    "dropped_moments": {"batch_checksum", "learning_rate"},
    "reset_rate": {"batch_checksum"},
    "replayed_data": {"learning_rate"},
    "skipped_data": {"learning_rate"},
    "lost_random_state": {"batch_checksum", "learning_rate"},
}


@hardware("cpu", "gpu", "ascend")
def test_each_fault_of_resuming_turns_its_own_metric_red(trainer):
    """Feature: resumed after five of ten updates, healthily, and with each of five faults planted.

    Expectation: the healthy one passes in every bit. Lost moments show in the first update, and not in its loss and
    gradient; a reset rate in the rate; replayed and left-out rows in the rows' checksum; lost random numbers in the
    loss, where rows and rate are right. The data position, the rate and the moments are thereby told apart.
    """
    whole = trainer.run(SCENARIO)
    trainer.run(SCENARIO, until=5)
    left = trainer.checkpoints
    healthy = trainer.run(SCENARIO, resume=left)
    assert healthy.curves == whole.curves
    for fault, wanted in FAULTS.items():
        faulty = trainer.run(SCENARIO, resume=left, fault=fault)
        found = first_steps(whole, faulty, CURVES)
        assert {name: found.get(name) for name in wanted} == wanted, fault
        assert not found.keys() & UNTOUCHED[fault], fault
        assert all(step > 5 for step in found.values()), fault


@smoke
@hardware("cpu", "gpu", "ascend")
def test_a_resumed_training_is_judged_by_the_baseline_of_one_that_never_stopped(trainer):
    """Feature: the whole run as a baseline, the resumed one judged by it.

    Expectation: every number passes, the curves from the first step on.
    """
    whole = trainer.run(SCENARIO)
    trainer.run(SCENARIO, until=5)
    resumed = trainer.run(SCENARIO, resume=trainer.checkpoints)
    numbers = [*CURVES, "tokens_seen", "checkpoint_perplexity_curve", "validation_perplexity"]
    assert not caught(whole, resumed, numbers)
