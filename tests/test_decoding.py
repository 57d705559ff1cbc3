import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from harness.decoding import Decoding
from harness.errors import ScenarioError

RANDOM = np.random.default_rng(5)
LOGITS = np.log(np.array([[0.1, 0.2, 0.7]], np.float32))
logits = arrays.arrays(np.float32, (3, 7), elements=st.floats(-20, 20, width=32))
draws = st.lists(st.floats(0, 1, exclude_max=True), min_size=3, max_size=3).map(np.array)


def shares(decoding, count=6000):
    drawn = decoding.choose(LOGITS.repeat(count, axis=0), RANDOM.random(count))
    return np.bincount(drawn, minlength=3) / count


def test_drawing_follows_the_distribution():
    assert shares(Decoding()) == pytest.approx([0.1, 0.2, 0.7], abs=0.03)
    squares = np.array([0.01, 0.04, 0.49])
    assert shares(Decoding(temperature=0.5)) == pytest.approx(squares / squares.sum(), abs=0.03)
    assert shares(Decoding(top_k=2)) == pytest.approx([0, 2 / 9, 7 / 9], abs=0.03)
    assert shares(Decoding(top_p=0.7)).tolist() == [0, 0, 1]
    assert shares(Decoding(top_p=0.71)) == pytest.approx([0, 2 / 9, 7 / 9], abs=0.03)
    # What top_k leaves is all that top_p is a share of.
    assert shares(Decoding(top_k=2, top_p=0.75)).tolist() == [0, 0, 1]


def test_no_more_than_reach_the_share_may_be_chosen():
    equal = np.zeros((1, 4), np.float32)
    assert (Decoding(top_p=0.5).weights(equal) > 0).sum() == 2
    assert (Decoding(top_p=0.51).weights(equal) > 0).sum() == 3


def test_the_edges_of_a_draw():
    edge = Decoding().choose(np.zeros((2, 4), np.float32), np.array([0.0, 1.0 - 1e-16]))
    assert edge.tolist() == [0, 3]
    impossible = np.array([[-np.inf, 0.0, -np.inf]] * 2, np.float32)
    assert Decoding().choose(impossible, np.array([0.0, 1.0 - 1e-16])).tolist() == [1, 1]


@given(logits, draws)
def test_greedy_takes_the_likeliest_whatever_is_drawn(values, drawn):
    assert Decoding(temperature=0).choose(values, drawn).tolist() == values.argmax(-1).tolist()
    assert Decoding(top_k=1).choose(values, drawn).tolist() == values.argmax(-1).tolist()
    assert Decoding(top_p=1e-9).choose(values, drawn).tolist() == values.argmax(-1).tolist()


@given(logits, draws, st.integers(1, 9), st.floats(0.05, 1), st.floats(0.1, 3))
def test_only_likely_tokens_are_chosen(values, drawn, top_k, top_p, temperature):
    decoding = Decoding(temperature, top_k, top_p)
    weights = decoding.weights(values)
    chosen = decoding.choose(values, drawn)
    assert (np.take_along_axis(weights, chosen[:, None], -1) > 0).all()
    assert ((weights > 0).sum(-1) <= top_k).all()
    plain = Decoding(temperature).weights(values)
    for row in range(3):
        kept = weights[row] > 0
        assert kept.any()
        if not kept.all():
            assert plain[row][kept].min() >= plain[row][~kept].max()


@given(logits, draws)
def test_limits_that_exclude_nothing_change_nothing(values, drawn):
    assert Decoding(1.0, 7, 1.0).choose(values, drawn).tolist() == Decoding().choose(values, drawn).tolist()
    assert Decoding(1.0, 99, 1.0).choose(values, drawn).tolist() == Decoding().choose(values, drawn).tolist()


@given(logits, draws, st.floats(-5, 5))
def test_a_constant_on_all_logits_changes_nothing(values, drawn, constant):
    moved = (values.astype(np.float64) + np.float64(np.float32(constant))).astype(np.float64)
    weights = [Decoding(0.9, 4, 0.8).weights(each.astype(np.float64)) for each in (values, moved)]
    assert ((weights[0] > 0).sum(-1) <= 4).all()
    assert weights[0].sum(-1) == pytest.approx(weights[1].sum(-1), rel=1e-6)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": float("nan")}, "temperature must be a finite number of at least 0, not nan"),
        ({"temperature": -0.1}, "temperature must"),
        ({"top_k": -1}, "top_k must be a whole number of at least 0"),
        ({"top_k": 1.5}, "top_k must"),
        ({"top_k": True}, "top_k must"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, not 0.0"),
        ({"top_p": 1.01}, "top_p must"),
        ({"top_p": float("nan")}, "top_p must"),
    ],
)
def test_what_can_not_be_is_refused(fields, message):
    with pytest.raises(ScenarioError, match=message):
        Decoding(**fields)
