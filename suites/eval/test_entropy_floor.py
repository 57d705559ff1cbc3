"""On a source whose entropy is known, training can be told from perfect training."""

import math

from fixtures.scenarios import MARKOV
from harness import hardware, untimed
from harness.corpus import MarkovSource

pytestmark = untimed


@hardware("cpu", "gpu", "ascend")
def test_perplexity_reaches_the_entropy_floor(trainer, gate):
    """Feature: learning a first-order Markov chain of 16 symbols to the end.

    Expectation: no model beats exp(entropy rate) but by the luck of the held-out draw, and that luck is known too: the
    source's own perplexity on the same tokens. Training must come within 2 % of the source on those tokens, can't be
    better than it by more than 0.2 %, and lies within 3 % of the floor (over 16 384 tokens the draw scatters by 0.7 %).
    """
    run = trainer.run(MARKOV)
    floor = math.exp(MarkovSource.default().entropy_rate)
    reached = run["validation_perplexity"]
    assert run.oracle_perplexity is not None
    assert 0.998 < reached / run.oracle_perplexity < 1.02
    assert 0.97 < reached / floor < 1.03
    gate.check(run, only=["validation_perplexity"])
