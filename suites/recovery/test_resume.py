"""A training that dies goes on as if it had not."""

import pytest

from fixtures.scenarios import FOUR_LAYERS, SHORT
from fixtures.texts import page
from harness import Checkpoints, Layout, cards, hardware, untimed
from harness.errors import LaunchError

pytestmark = untimed

SAVING = SHORT.replace(eval_every=4, checkpoints=Checkpoints(every=2, kept=3))
"""Saves five times, and keeps the last three."""


def equal(resumed, whole):
    """Whether two runs are the same in every bit: all curves from the first step on, parameters, text, evaluation."""
    assert resumed.curves == whole.curves
    assert resumed.weights == whole.weights
    assert resumed.samples == whole.samples
    assert resumed["validation_perplexity"] == whole["validation_perplexity"]
    return True


def killed(trainer, scenario, fault, resume=None):
    """Trains until a planted death, and returns the checkpoints that are left."""
    with pytest.raises(LaunchError, match="was killed by SIGKILL"):
        trainer.run(scenario, fault=fault, resume=resume)
    return trainer.checkpoints


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize(
    ("mode", "kind"), [("graph", "ckpt"), pytest.param("pynative", "safetensors", marks=pytest.mark.nightly)]
)
def test_it_resumes_bit_for_bit(trainer, gate, mode, kind):
    """Feature: killed within an update of two parts, over a text that ends during training, with two data workers.

    Expectation: resumed, it goes on from the newest checkpoint, in the second epoch, and everything is equal in every
    bit, the first steps included, in both modes and both formats.
    """
    scenario = SAVING.replace(
        data=page(trainer.session.root),
        mode=mode,
        accumulation=2,
        data_workers=2,
        samples=4 if mode == "graph" else 0,
        sample_tokens=16,
        checkpoints=Checkpoints(every=2, kept=3, format=kind),
    )
    whole = trainer.run(scenario)
    resumed = trainer.run(scenario, resume=killed(trainer, scenario, "kill_accumulating=9"))
    assert resumed.resumed_from == 8
    assert equal(resumed, whole)
    curves = ["loss", "grad_norm", "update_norm", "batch_checksum", "tokens_seen", "checkpoint_perplexity_curve"]
    gate.check(resumed, only=[*curves, "validation_perplexity"])


@hardware("cpu", "gpu", "ascend")
def test_it_resumes_from_any_step_again_and_again(trainer):
    """Feature: saved after every third update; stopped after the first, killed before 5, stopped after 8.

    Expectation: resumed each time, nothing of it shows.
    """
    scenario = SAVING.replace(data=page(trainer.session.root), checkpoints=Checkpoints(every=3))
    whole = trainer.run(scenario)
    trainer.run(scenario, until=1)
    second = killed(trainer, scenario, "kill_step=5", resume=trainer.checkpoints)
    third = trainer.run(scenario, until=8, resume=second)
    assert third.resumed_from == 3
    assert third.curve("loss") == whole.curve("loss")[:8]
    last = trainer.run(scenario, resume=trainer.checkpoints)
    assert last.resumed_from == 8
    assert equal(last, whole)


PHASES = {
    "kill_writing": 2,
    "kill_saving": 2,
    "kill_saved": 4,
    "kill_pruning": 4,
    "kill_evaluating": 2,
    "kill_reporting": 10,
}
"""Where it dies → the newest checkpoint that must be left."""

BY_NIGHT = PHASES.keys() - {"kill_saving", "kill_reporting"}


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize(
    "phase", [pytest.param(name, marks=[pytest.mark.nightly] * (name in BY_NIGHT)) for name in PHASES]
)
def test_a_death_while_saving_costs_at_most_the_work_since(trainer, phase):
    """Feature: a rank that dies in one of the phases of saving after update 4, or when all is done, before it tells.

    Expectation: the newest complete checkpoint is gone on from, and the end is equal in every bit.
    """
    scenario = SAVING.replace(checkpoints=Checkpoints(every=2, kept=1))
    with pytest.raises(LaunchError, match="was killed by SIGKILL"):
        trainer.run(scenario, fault=f"{phase}=4")
    resumed = trainer.run(scenario, resume=trainer.checkpoints)
    assert resumed.resumed_from == PHASES[phase]
    assert equal(resumed, trainer.run(scenario))


LAYOUTS = {
    "dp2": {"layout": Layout(dp=2, optimizer_sharding=True)},
    "pp2": {"layout": Layout(pp=2), "micro_batches": 2},
    "tp2": {"layout": Layout(tp=2)},
}


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize("layout", ["dp2", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("pp2", "tp2"))])
@cards(2)
def test_two_ranks_resume_bit_for_bit_and_so_does_one_to_rounding(trainer, layout):
    """Feature: the second of two ranks dies while both save.

    Expectation: both go on from the checkpoint before, bit for bit. One process that goes on from the same checkpoint
    ends where they end, to rounding: the states of the optimizer, the cut matrices, and the stages find together.
    """
    scenario = SAVING.replace(**LAYOUTS[layout])
    whole = trainer.run(scenario)
    left = killed(trainer, scenario, "kill_writing=8")
    resumed = trainer.run(scenario, resume=left)
    assert resumed.resumed_from == 6
    assert equal(resumed, whole)
    alone = trainer.run(scenario.replace(layout=Layout(), micro_batches=1), resume=left)
    assert alone.curve("loss")[:6] == whole.curve("loss")[:6]
    assert alone.curve("loss") == pytest.approx(whole.curve("loss"), rel=1e-5)
    assert alone.curve("update_norm") == pytest.approx(whole.curve("update_norm"), rel=1e-3)
    assert alone.parameter_distance(whole) < 1e-4


@hardware("cpu", "gpu", "ascend")
@cards(2)
@pytest.mark.nightly
def test_stages_may_be_cut_otherwise_at_a_checkpoint(trainer):
    """Feature: two stages of two blocks each, resumed with two interleaved chunks a stage.

    Expectation: blocks find their new places, and the numbers go on, to rounding.
    """
    scenario = FOUR_LAYERS.replace(
        layout=Layout(pp=2), micro_batches=4, eval_sequences=0, checkpoints=Checkpoints(every=5)
    )
    whole = trainer.run(scenario)
    trainer.run(scenario, until=5)
    interleaved = scenario.replace(pipeline_schedule="interleaved", chunks=2)
    resumed = trainer.run(interleaved, resume=trainer.checkpoints)
    assert resumed.curve("loss") == pytest.approx(whole.curve("loss"), rel=1e-5)
    assert resumed.parameter_distance(whole) < 1e-4


@hardware("cpu", "gpu", "ascend")
def test_the_batch_may_change_at_a_checkpoint(trainer):
    """Feature: large batches first, then small ones.

    Expectation: no row is seen twice and none is left out: 5 updates of 8 rows and 10 of 4 make 80 rows, of which each
    of the text's 45 comes first once, then again.
    """
    text = page(trainer.session.root)
    scenario = SAVING.replace(data=text, schedule="constant", checkpoints=Checkpoints(every=5))
    trainer.run(scenario, until=5)
    small = trainer.run(scenario.replace(batch=4, steps=15, eval_every=0), resume=trainer.checkpoints)
    seen = small.curve("tokens_seen")
    rows = [after - before for before, after in zip((0, *seen), seen, strict=False)]
    # 40 rows, then the epoch's last five: four and one; then the next epoch's.
    assert [row / scenario.sequence for row in rows] == [8] * 5 + [4, 1] + [4] * 8
