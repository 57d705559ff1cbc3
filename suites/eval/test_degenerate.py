"""Models that loss alone lets pass: each writes nothing worth reading, and is caught by what looks at that."""

import pytest

from fixtures.judging import caught
from fixtures.scenarios import PROSE, TEXT
from fixtures.texts import phrase
from harness import Scenario, hardware, smoke, untimed
from harness.gate import Status

pytestmark = untimed

VARIETY = {"distinct_2", "distinct_3", "repetition", "longest_repeat", "self_similarity"}
"""What tells a text that says something from one that says one thing again and again."""


@hardware("cpu", "gpu", "ascend")
def test_a_model_of_one_phrase_passes_on_loss_and_fails_on_variety(trainer):
    """Feature: a corpus that is one phrase again and again, learned in a few steps, beside real prose.

    Expectation: loss and perplexity are far better than those of prose; what is written says one thing: of the metrics
    of variety, all fall short, and nothing but they.
    """
    healthy = trainer.run(PROSE)
    stuck = trainer.run(PROSE.replace(data=phrase(trainer.session.root)))
    assert stuck.curve("loss")[-1] < 0.5 * healthy.curve("loss")[-1]
    found = caught(healthy, stuck, ["validation_perplexity", "token_accuracy", *VARIETY])
    assert found.pop("validation_perplexity") is Status.IMPROVED
    assert found.pop("token_accuracy") is Status.IMPROVED
    assert found == dict.fromkeys(VARIETY, Status.REGRESSED)


@hardware("cpu", "gpu", "ascend")
def test_a_decoder_that_is_stuck_passes_on_perplexity_and_fails_on_variety(trainer):
    """Feature: the same training, whose continuations always take the likeliest token.

    Expectation: a small model then runs into a loop. Loss, perplexity and accuracy are equal to the last bit, variety
    is lost.
    """
    healthy, greedy = trainer.run(PROSE), trainer.run(PROSE.replace(temperature=0.0))
    assert greedy.curve("loss") == healthy.curve("loss")
    assert greedy["validation_perplexity"] == healthy["validation_perplexity"]
    assert greedy["token_accuracy"] == healthy["token_accuracy"]
    assert caught(healthy, greedy, sorted(VARIETY)) == dict.fromkeys(VARIETY, Status.REGRESSED)


@hardware("cpu", "gpu", "ascend")
def test_a_lower_perplexity_does_not_excuse_less_varied_text(trainer):
    """Feature: a training half as long again, whose continuations are drawn at a low temperature.

    Expectation: its perplexity is better and its text is poorer: one is reported as IMPROVED, the other as REGRESSED,
    and neither hides the other.
    """
    healthy = trainer.run(PROSE)
    longer = trainer.run(PROSE.replace(steps=225, temperature=0.3))
    found = caught(healthy, longer, ["validation_perplexity", "distinct_2", "distinct_3", "repetition"])
    poorer = dict.fromkeys(("distinct_2", "distinct_3", "repetition"), Status.REGRESSED)
    assert found == {"validation_perplexity": Status.IMPROVED, **poorer}


@pytest.mark.nightly
@hardware("cpu", "gpu", "ascend")
def test_variety_is_watched_while_a_model_learns(trainer, gate):
    """Feature: continuations sampled and a few held-out sequences evaluated during training.

    Expectation: sampling changes nothing of the training. Accuracy rises where perplexity falls, so nothing disagrees.
    """
    watched = TEXT.replace(sample_every=20, quick_sequences=32)
    run = trainer.run(watched)
    assert run.curve("loss") == trainer.run(TEXT).curve("loss")
    assert len(run.curve("distinct_3_curve")) == 2
    assert run.curve("token_accuracy_curve")[0] < run.curve("token_accuracy_curve")[1]
    assert not run.warnings
    gate.check(run, only=["distinct_3_curve", "perplexity_curve", "token_accuracy_curve", "token_accuracy"])


DIVERGING = Scenario(
    model="nano",
    steps=12,
    batch=8,
    sequence=64,
    schedule="constant",
    learning_rate=1.0,
    clip_norm=None,
    optimizer="sgd",
    eval_every=4,
    eval_sequences=64,
    quick_sequences=16,
    seed=1,
)
"""Its rate is far too high: the model forgets what it knew."""


@smoke
@hardware("cpu", "gpu", "ascend")
def test_trouble_on_a_few_sequences_is_looked_at_on_all(trainer):
    """Feature: a training that goes bad after its first evaluation.

    Expectation: perplexity rises on the few held-out sequences, so all are evaluated at once, and both are told.
    """
    with pytest.warns(UserWarning, match=r"step \d+: perplexity on 16 held-out sequences is .*; on all of them it is"):
        trainer.run(DIVERGING)
