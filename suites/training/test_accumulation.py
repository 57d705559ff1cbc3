"""Gradient accumulation is the big batch, in smaller pieces."""

import pytest

from fixtures.scenarios import SHORT
from harness import hardware, smoke, untimed

pytestmark = untimed


@smoke
@hardware("cpu", "gpu", "ascend")
def test_accumulation_equals_the_big_batch(trainer):
    """Feature: token-weighted accumulation of four parts.

    Expectation: sums of losses and gradients over four parts are the sums over the whole, up to float32 order; neither
    four times (parts summed, not averaged) nor a quarter. Only peak memory shrinks, since a part is a quarter as large.
    """
    whole, parts = trainer.run(SHORT), trainer.run(SHORT.replace(accumulation=4))
    assert parts.curve("loss") == pytest.approx(whole.curve("loss"), rel=1e-5)
    assert parts.curve("grad_norm") == pytest.approx(whole.curve("grad_norm"), rel=1e-4)
    assert parts.curve("update_norm") == pytest.approx(whole.curve("update_norm"), rel=1e-4)
    assert parts["peak_memory"] < whole["peak_memory"]
