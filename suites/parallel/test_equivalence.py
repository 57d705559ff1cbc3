"""Every layout trains the model that one process would."""

import pytest

from fixtures.scenarios import FOUR_LAYERS, SHORT
from harness import Layout, Scenario, cards, hardware, untimed
from harness.run import Run

pytestmark = untimed


def assert_equal_training(trainer, scenario: Scenario) -> Run:
    """A layout and one process, from the same initial values over the same batches, come to the same numbers.

    Sums over ranks are taken in another order than one process takes them, which moves float32 losses by some 1e-7;
    Adam makes much of small gradients, so parameters part by up to 1e-5 of their norm. What a layout gets wrong, a
    missing summand or a parameter left out, is far above: after ten updates a parameter that was not updated is more
    than 1e-2 of its norm away.
    """
    alone = scenario.replace(
        layout=Layout(), micro_batches=1, pipeline_schedule="1f1b", chunks=1, fused_reduction=True, accumulation=1
    )
    single, spread = trainer.run(alone), trainer.run(scenario)
    assert spread.curve("loss") == pytest.approx(single.curve("loss"), rel=1e-5)
    assert spread.curve("grad_norm") == pytest.approx(single.curve("grad_norm"), rel=1e-4)
    assert spread.curve("update_norm") == pytest.approx(single.curve("update_norm"), rel=1e-4)
    assert spread["validation_perplexity"] == pytest.approx(single["validation_perplexity"], rel=1e-5)
    assert spread["token_accuracy"] == pytest.approx(single["token_accuracy"], abs=2e-3)
    assert spread.parameter_distance(single) < 1e-3
    assert spread["parameters"] == single["parameters"]
    assert spread["diverged_replicas"] == 0
    return spread


TRAFFIC = ["communication_calls", "communication_volume"]


TWO_RANKS = {
    "tp2": SHORT.replace(layout=Layout(tp=2)),
    "pp2": SHORT.replace(layout=Layout(pp=2), micro_batches=4),
    "pp2-gpipe": SHORT.replace(layout=Layout(pp=2), micro_batches=4, pipeline_schedule="gpipe"),
    "pp2-zero-bubble": SHORT.replace(layout=Layout(pp=2), micro_batches=4, pipeline_schedule="zero_bubble"),
    "pp2-fewer-micro-batches-than-stages": SHORT.replace(layout=Layout(pp=2), accumulation=2),
    "pp2-interleaved-tied": FOUR_LAYERS.replace(
        layout=Layout(pp=2), micro_batches=4, pipeline_schedule="interleaved", chunks=2
    ),
}

FOUR_RANKS = {
    "dp4-sharded": SHORT.replace(layout=Layout(dp=4, optimizer_sharding=True)),
    "tp4-tied": FOUR_LAYERS.replace(layout=Layout(tp=4)),
    "pp4-tied": FOUR_LAYERS.replace(layout=Layout(pp=4), micro_batches=4),
    "dp2-pp2-sharded": SHORT.replace(layout=Layout(dp=2, pp=2, optimizer_sharding=True), micro_batches=2),
    "dp2-tp2-sharded": SHORT.replace(layout=Layout(dp=2, tp=2, optimizer_sharding=True)),
    "tp2-pp2": SHORT.replace(layout=Layout(tp=2, pp=2), micro_batches=2),
}


ALONE = {"dp4-sharded", "tp4-tied", "pp4-tied"}
"""Of one kind of parallelism only: what two ranks of it show, and the products of two kinds."""


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=[pytest.mark.nightly] * (name == "pp2-gpipe")) for name in TWO_RANKS]
)
@cards(2)
def test_two_ranks_train_what_one_process_does(trainer, gate, layout):
    """Feature: tensor and pipeline parallelism over two ranks, each schedule.

    Expectation: loss, global norm, update and final parameters of one process.
    """
    gate.check(assert_equal_training(trainer, TWO_RANKS[layout]), only=TRAFFIC)


MORE = {
    "dp4": SHORT.replace(layout=Layout(dp=4)),
    "tp4": FOUR_LAYERS.replace(model=FOUR_LAYERS.model.removesuffix(",tied=1"), layout=Layout(tp=4)),
    "pp4": FOUR_LAYERS.replace(model=FOUR_LAYERS.model.removesuffix(",tied=1"), layout=Layout(pp=4), micro_batches=4),
    "dp2-pp2": SHORT.replace(layout=Layout(dp=2, pp=2), micro_batches=2),
    "dp2-tp2": SHORT.replace(layout=Layout(dp=2, tp=2)),
}


@pytest.mark.nightly
@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize("layout", MORE)
@cards(4)
def test_four_ranks_without_sharding_or_tying_do_so_too(trainer, layout):
    """Feature: the same layouts with whole optimizers, and with heads of their own."""
    assert_equal_training(trainer, MORE[layout])


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=[pytest.mark.nightly] * (name in ALONE)) for name in FOUR_RANKS]
)
@cards(4)
def test_four_ranks_train_what_one_process_does(trainer, gate, layout):
    """Feature: four ranks, and products of two kinds of parallelism.

    Expectation: loss, global norm, update and final parameters of one process.
    """
    gate.check(assert_equal_training(trainer, FOUR_RANKS[layout]), only=TRAFFIC)


@hardware("cpu", "gpu", "ascend")
@cards(4)
@pytest.mark.nightly
def test_drawn_layouts_train_what_one_process_does(trainer):
    """Feature: layouts and model shapes that nobody chose.

    Expectation: as above, for any layout of up to four ranks that a scenario accepts.
    """
    from fixtures.layouts import for_drawn  # collecting the suites need not wait for hypothesis

    for_drawn(lambda scenario: assert_equal_training(trainer, scenario), examples=2)


@pytest.mark.nightly
@hardware("cpu", "gpu", "ascend")
@cards(8)
def test_many_drawn_layouts_train_what_one_process_does(trainer):
    """Feature: the same with many more draws, and up to eight ranks."""
    from fixtures.layouts import for_drawn

    for_drawn(lambda scenario: assert_equal_training(trainer, scenario), examples=40, ranks=8)
