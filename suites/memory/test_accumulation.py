"""Accumulation: a batch of any size in the memory of a part."""

import pytest

from fixtures.scenarios import ORDERED, SHORT
from harness import hardware, untimed
from harness.session import TrainingWarning

pytestmark = untimed


@hardware("cpu", "gpu", "ascend")
def test_the_peak_stays_while_the_batch_grows(trainer, gate):
    """Feature: four times the batch in four parts, and in one.

    Expectation: in parts, the peak grows by one set of gradients, which waits for the next part's; in one, nearly
    fourfold.
    """
    one = trainer.run(ORDERED)
    parts = trainer.run(ORDERED.replace(batch=4 * ORDERED.batch, accumulation=4, steps=2))
    whole = trainer.run(ORDERED.replace(batch=4 * ORDERED.batch, steps=2))
    gradients = 4 * one["parameters"] / 2**20
    assert parts["peak_memory"] == pytest.approx(one["peak_memory"] + gradients, abs=4)
    assert whole["peak_memory"] > 3.5 * one["peak_memory"]
    ratio = parts["peak_memory"] / whole["peak_memory"]
    gate.check(parts, only=["peak_memory"], ratios={"peak_memory_ratio": ratio})


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize("norm", ["each_row", "over_rows"])
def test_a_norm_over_rows_does_not_equal_the_big_batch(trainer, norm):
    """Feature: a batch of 8 at once and in four parts, with LayerNorm and with BatchNorm.

    Expectation: LayerNorm looks at one row, so losses are the same to rounding. BatchNorm takes its mean and variance
    from the rows of a part, so the first loss, before any update, already differs by a thousand times what rounding
    does. The trainer warns of it.
    """
    scenario = SHORT.replace(model=f"fixtures.models:{norm}", eval_sequences=0, weight_decay=0.0)
    whole = trainer.run(scenario)
    if norm == "over_rows":
        with pytest.warns(TrainingWarning, match=r"norm of model='fixtures.models:over_rows' .* with accumulation=4"):
            parts = trainer.run(scenario.replace(accumulation=4))
    else:
        parts = trainer.run(scenario.replace(accumulation=4))
    distances = [abs(ours / theirs - 1) for ours, theirs in zip(parts.curve("loss"), whole.curve("loss"), strict=True)]
    if norm == "over_rows":
        assert distances[0] > 1e-4
    else:
        assert max(distances) < 1e-6
