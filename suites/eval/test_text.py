"""A model trained on real text predicts unseen text better, and writes text that is not one phrase again and again."""

from fixtures.scenarios import TEXT
from harness import hardware, untimed

pytestmark = untimed


@hardware("cpu", "gpu", "ascend")
def test_text_is_predicted_and_varied(trainer, gate):
    """Feature: held-out perplexity and sampled continuations after training.

    Expectation: perplexity falls between evaluations and ends far below the 256 of a uniform model. A falling loss
    alone could hide a generator that repeats itself, so of 16 × 64 sampled bytes most 3-grams must differ, as they do
    in prose of that length.
    """
    run = trainer.run(TEXT)
    first, last = run.curve("perplexity_curve")
    assert last < first < 256
    assert run["validation_perplexity"] == last
    assert run["distinct_3"] > 0.5
    gate.check(
        run,
        only=[
            "perplexity_curve",
            "token_accuracy_curve",
            "validation_perplexity",
            "token_accuracy",
            "distinct_1",
            "distinct_2",
            "distinct_3",
            "repetition",
            "longest_repeat",
            "self_similarity",
            "empty_outputs",
        ],
    )
