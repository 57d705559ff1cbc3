"""How ranks start changes nothing but how long that takes."""

import pytest

from fixtures.scenarios import SHORT
from harness import Layout, cards, hardware, untimed
from harness.errors import LaunchError

pytestmark = untimed


@hardware("cpu")
@cards(2)
@pytest.mark.parametrize("ranks", [1, 2])
def test_forked_ranks_train_to_the_same_bits_as_fresh_ones(trainer, ranks):
    """Feature: ranks forked from a process that has imported MindSpore, and ranks that import it themselves.

    Expectation: a fork copies what an import left and nothing that a training did, so all numbers are equal in every
    bit, and the pool's peak is the same up to the whole MiB that it is told in.
    """
    scenario = SHORT.replace(layout=Layout(dp=ranks))
    forked, fresh = trainer.run(scenario, start="fork"), trainer.run(scenario, start="fresh")
    assert forked.curves == fresh.curves
    assert forked.weights == fresh.weights
    assert forked["validation_perplexity"] == fresh["validation_perplexity"]
    assert forked["peak_memory"] == pytest.approx(fresh["peak_memory"], rel=0.05, abs=2)
    assert not forked.warnings, "it was not forked at all"


@hardware("cpu")
def test_a_rank_that_crashes_or_leaks_harms_no_other(trainer):
    """Feature: between two runs, one rank is killed and one keeps 64 MiB of the pool, all forked from one process.

    Expectation: the second run is the first, in every bit and in its peak.
    """
    before = trainer.run(SHORT, start="fork")
    with pytest.raises(LaunchError, match="was killed by SIGKILL"):
        trainer.run(SHORT, start="fork", fault="kill_step=3")
    leaking = trainer.run(SHORT, start="fork", fault="memory=64")
    assert leaking.curves == before.curves
    after = trainer.run(SHORT, start="fork", fresh=True)
    assert after.curves == before.curves
    assert after.weights == before.weights
    assert after["peak_memory"] == before["peak_memory"] < leaking["peak_memory"]
