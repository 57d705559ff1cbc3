import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Checkpoints
from harness.checkpoints.policy import best_of, superfluous
from harness.errors import ScenarioError
from harness.evaluation import Evaluation

STEPS = st.sets(st.integers(1, 200), max_size=30)


@given(STEPS, st.integers(1, 10), st.data())
def test_what_goes_is_old_and_nobody_asked_for_it(steps, kept, data):
    alarmed = data.draw(st.sets(st.sampled_from(sorted(steps)))) if steps else set()
    best = data.draw(st.sampled_from([None, *sorted(steps)]))
    gone = superfluous(steps, kept, alarmed, best)
    left = sorted(steps - set(gone))
    assert set(gone) <= steps
    assert best is None or best in left
    assert left[-kept:] == sorted(steps)[-kept:]
    assert len(left) <= 2 * kept + 1
    if steps:
        assert max(steps) in left


def test_alarmed_ones_stay_beside_the_newest_and_not_without_end():
    assert superfluous(range(1, 11), 2, [3], None) == [1, 2, 4, 5, 6, 7, 8]
    assert superfluous(range(1, 11), 2, [1, 2, 3], None) == [1, 4, 5, 6, 7, 8]
    assert superfluous(range(1, 11), 2, [], 4) == [1, 2, 3, 5, 6, 7, 8]


def test_the_best_is_the_lowest_perplexity_or_the_highest_accuracy():
    found = {10: Evaluation(30.0, 10, 5), 20: Evaluation(20.0, 10, 4), 30: Evaluation(25.0, 10, 6)}
    assert best_of(found, "perplexity") == 20
    assert best_of(found, "token_accuracy") == 30
    assert best_of(found, "") is None
    assert best_of({}, "perplexity") is None
    assert best_of({10: Evaluation(0.0, 0, 0)}, "perplexity") is None


def test_a_perplexity_that_is_no_number_is_never_the_best():
    found = {10: Evaluation(float("nan"), 10, 5), 20: Evaluation(20.0, 10, 4), 30: Evaluation(float("inf"), 10, 4)}
    assert best_of(found, "perplexity") == 20


def test_the_last_update_is_saved_too():
    due = Checkpoints(every=4)
    assert [step for step in range(1, 11) if due.is_due(step, 10)] == [4, 8, 10]
    assert not any(Checkpoints().is_due(step, 10) for step in range(1, 11))


@given(st.integers(25, 100_000))
def test_a_run_makes_some_twenty_five(steps):
    due = Checkpoints.over(steps)
    made = -(-steps // due.every)
    assert 13 <= made <= 25
    assert steps < 50 or made >= 17


@given(st.integers(600, 100_000))
def test_a_long_run_makes_twenty_to_thirty(steps):
    assert 20 <= -(-steps // Checkpoints.over(steps).every) <= 30


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"every": -1}, "checkpoints.every must be a whole number of at least 0, not -1"),
        ({"every": True}, "not True"),
        ({"kept": 0}, "checkpoints.kept must be a whole number of at least 1, not 0"),
        ({"format": "pickle"}, "checkpoints.format='pickle' is unknown; choose one of 'safetensors', 'ckpt'"),
        ({"best": "loss"}, "checkpoints.best='loss' is unknown"),
    ],
)
def test_what_cannot_be_is_refused(fields, message):
    with pytest.raises(ScenarioError, match=message):
        Checkpoints(**fields)
