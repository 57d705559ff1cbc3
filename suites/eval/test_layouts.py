"""Evaluation and generation do not depend on how a model is spread."""

import pytest

from fixtures.scenarios import SHORT
from harness import Layout, cards, hardware, untimed

pytestmark = untimed

WRITING = SHORT.replace(samples=4, sample_tokens=24, top_k=40)
LAYOUTS = {
    "dp2": {"layout": Layout(dp=2)},
    "tp2": {"layout": Layout(tp=2)},
    "pp2": {"layout": Layout(pp=2), "micro_batches": 2},
}


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize("layout", [pytest.param("dp2", marks=pytest.mark.nightly), "tp2", "pp2"])
@cards(2)
def test_a_layout_writes_and_scores_what_one_process_does(trainer, layout):
    """Feature: held-out perplexity, token accuracy and continuations of two ranks.

    Expectation: those of one process, to rounding; the same text, token for token, whether keys and values are kept
    (one process, data and tensor parallel) or not (stages).
    """
    alone, spread = trainer.run(WRITING), trainer.run(WRITING.replace(**LAYOUTS[layout]))
    assert spread["validation_perplexity"] == pytest.approx(alone["validation_perplexity"], rel=1e-5)
    assert spread["token_accuracy"] == pytest.approx(alone["token_accuracy"], abs=2e-3)
    assert spread.samples == alone.samples
