"""Compiled graphs that the untimed runs of a session share."""

import pytest

from fixtures.scenarios import FOUR_LAYERS, SHORT
from harness import Layout, cards, hardware, untimed

pytestmark = untimed

ALONE = SHORT.replace(
    steps=7, accumulation=2, precision="float16", recompute="full", eval_every=3, samples=2, sample_tokens=8
)
"""Every kind of graph of one process: gradients, their sum, the update, evaluation, and decoding with a cache."""

SPREAD = {
    "dp2-sharded": SHORT.replace(steps=7, layout=Layout(dp=2, optimizer_sharding=True)),
    "tp2": SHORT.replace(steps=7, layout=Layout(tp=2), samples=2, sample_tokens=8),
    "pp2-tied": FOUR_LAYERS.replace(
        steps=7, layout=Layout(pp=2), micro_batches=4, pipeline_schedule="interleaved", chunks=2
    ),
}


@hardware("cpu")
def test_a_reused_graph_gives_equal_bits(trainer):
    """Feature: a run that loads the graphs of a shorter one, against a run that compiles all of its own.

    Expectation: a graph that is stored and loaded is the same graph, so all numbers are equal in every bit: curves,
    parameters, perplexity, text. Five graphs are loaded, and none by the run that was asked to compile.
    """
    assert reused_graphs(trainer, ALONE) == 5


@hardware("cpu")
@cards(2)
@pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=[pytest.mark.nightly] * (name != "pp2-tied")) for name in SPREAD]
)
def test_reused_graphs_of_two_ranks_give_equal_bits(trainer, layout):
    """Feature: likewise, over two ranks, each of which loads its own graphs.

    Expectation: as of one process, by at least two graphs a rank.
    """
    assert reused_graphs(trainer, SPREAD[layout]) >= 4


def reused_graphs(trainer, scenario):
    """The number of graphs that a run loads, after comparing it with one that compiles."""
    trainer.run(scenario.replace(steps=3))
    reused, compiled = trainer.run(scenario), trainer.run(scenario, fresh=True)
    assert reused.curves == compiled.curves
    assert reused.weights == compiled.weights
    assert reused["validation_perplexity"] == compiled["validation_perplexity"]
    assert reused.samples == compiled.samples
    assert reused["peak_memory"] == pytest.approx(compiled["peak_memory"], rel=0.05, abs=2)
    assert compiled.reused_graphs == 0
    return reused.reused_graphs
