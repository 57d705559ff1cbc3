"""Two runs that should be one: where they part, and that they do not."""

import pytest
from typer.testing import CliRunner

from fixtures.scenarios import SHORT
from harness import Layout, cards, hardware, trace, untimed
from harness.cli import app
from harness.diverge import compare

pytestmark = untimed

TRACED = SHORT.replace(steps=6, eval_sequences=0, trace_every=1)
LAYOUTS = {
    "pynative": {"mode": "pynative"},
    "accumulation": {"accumulation": 2},
    "dp2": {"layout": Layout(dp=2)},
    "tp2": {"layout": Layout(tp=2)},
    "pp2": {"layout": Layout(pp=2), "micro_batches": 2},
}


def traced(trainer, scenario, fault=""):
    trainer.run(scenario, fault=fault)
    return trace.read(trainer.folder)


@pytest.mark.nightly
@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize("other", LAYOUTS)
@cards(2)
def test_modes_and_layouts_part_nowhere(trainer, other):
    """Feature: rows, parameters, activations and gradients of six steps, layer by layer, in another mode or layout.

    Expectation: they are compared at each layer that both hold, and are nowhere further apart than rounding explains;
    looking changes nothing of the training.
    """
    one, two = traced(trainer, TRACED), traced(trainer, TRACED.replace(**LAYOUTS[other]))
    found = compare(one, two)
    assert found.steps == [1, 2, 3, 4, 5, 6]
    assert found.parting is None
    names = [{layer.name for rank in side[1] for layer in rank.layers} for side in (one, two)]
    assert names[0] == names[1]
    assert trainer.run(TRACED).curve("loss") == trainer.run(TRACED.replace(trace_every=0)).curve("loss")


FAULTS = {
    "bad_batch=4": "step 4: the batch, row 0 of the batch, rank 0: other tokens",
    "nan=4": "step 4: parameter 'head.weight', rank 0: relative distance inf",
    "exploding_gradient=4": "step 4: gradient 'blocks.1.attention_norm.weight', rank 0: relative distance 0.",
    "learning_rate=1.1": "step 2: parameter 'embedding.weight', rank 0: relative distance 0.0",
}


@hardware("cpu", "gpu", "ascend")
def test_the_first_place_where_runs_part_is_named(trainer):
    """Feature: a healthy run beside runs with a fault planted in the data, a parameter, a gradient, the rate.

    Expectation: the command ends with 1 and names step, layer and rank; beside itself, it ends with 0.
    """
    trainer.run(TRACED)
    healthy = str(trainer.folder)
    for fault, named in FAULTS.items():
        trainer.run(TRACED, fault=fault)
        done = CliRunner().invoke(app, ["diverge", healthy, str(trainer.folder)], catch_exceptions=False)
        assert done.exit_code == 1
        assert f"the runs part at {named}" in done.output
    done = CliRunner().invoke(app, ["diverge", healthy, healthy], catch_exceptions=False)
    assert done.exit_code == 0
    assert "all are equal in every bit" in done.output


@hardware("cpu", "gpu", "ascend")
@cards(2)
@pytest.mark.nightly
def test_the_rank_whose_gradient_was_not_reduced_is_named(trainer):
    """Feature: the second of two replicas goes on with its own gradient.

    Expectation: the runs part at the first step, at the first gradient of the way back, on rank 1.
    """
    scenario = TRACED.replace(layout=Layout(dp=2))
    found = compare(traced(trainer, scenario), traced(trainer, scenario, "dropped_reduction")).parting
    assert (found.step, found.kind, found.name, found.rank) == (1, "gradient", "head.weight", 1)
