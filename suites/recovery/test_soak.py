"""Fifty deaths at random moments."""

import random

import pytest

from fixtures.scenarios import SHORT
from harness import Checkpoints, hardware, untimed
from harness.checkpoints.store import Store
from harness.errors import LaunchError

pytestmark = untimed

DEATHS = 50
LONG = SHORT.replace(steps=800, eval_sequences=0, checkpoints=Checkpoints(every=1, kept=3))


def fault(draw: random.Random, done: int) -> str:
    """Mostly some moments after the second step, whatever is done then; else a phase of a step or of its saving."""
    phase = draw.choice(["kill_after"] * 6 + ["kill_step", "kill_writing", "kill_saving", "kill_saved"])
    amount = draw.uniform(0.01, 0.5) if phase == "kill_after" else done + draw.randint(1, 12)
    return f"{phase}={amount:.4g}"


@pytest.mark.nightly
@hardware("cpu", "gpu", "ascend")
def test_fifty_random_deaths_end_in_the_same_parameters(trainer):
    """Feature: a training of 800 updates that saves after each; killed fifty times at random moments, and resumed.

    Expectation: no sample is lost or seen twice, no step's number differs, parameters are equal in every bit.
    """
    whole = trainer.run(LONG, deadline=600)
    draw, left, resumed_from = random.Random(20_261_130), None, []  # noqa: S311
    for _ in range(DEATHS):
        with pytest.raises(LaunchError, match="was killed by SIGKILL"):
            trainer.run(LONG, resume=left, fault=fault(draw, max(resumed_from, default=0)), deadline=600)
        left = trainer.checkpoints
        resumed_from.append(Store(left).newest()[0].step)
    last = trainer.run(LONG, resume=left, deadline=600)
    assert resumed_from == sorted(resumed_from)
    assert last.resumed_from == resumed_from[-1] > DEATHS
    assert last.curves == whole.curves
    assert last.weights == whole.weights
