import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ScenarioError
from harness.guard import FEWEST, Guard, Watch, bounds

USUAL = [3.0, 3.1, 2.9, 3.05, 2.95] * 4


def watching(losses=USUAL, norms=None, **fields):
    watch = Watch(Guard("stop", **fields))
    for step, loss in enumerate(losses, start=1):
        assert watch.look(step, loss, norms[step - 1] if norms else 1.0) is None
    return watch


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 30.0])
@pytest.mark.parametrize("what", ["loss", "grad_norm"])
def test_a_spike_is_told_by_name(what, value):
    values = {"loss": 3.0, "grad_norm": 1.0, what: value}
    spike = watching().look(21, values["loss"], values["grad_norm"])
    assert (spike.step, spike.what, spike.in_a_row) == (21, what, 1)
    assert str(spike).startswith(f"step 21: {what} is {value:.6g}; it was about ")


def test_no_number_is_a_spike_at_the_first_step_and_a_large_one_is_not():
    assert Watch(Guard("stop")).look(1, math.nan, 1.0).step == 1
    assert str(Watch(Guard("stop")).look(1, 3.0, math.inf)) == "step 1: grad_norm is inf"
    assert Watch(Guard("stop")).look(1, 1e30, 1e30) is None


def test_a_fall_is_no_spike():
    assert watching().look(21, 0.01, 1e-6) is None


def test_spikes_are_counted_in_a_row_and_never_become_usual():
    watch = watching()
    counts = [watch.look(21 + i, loss, 1.0) for i, loss in enumerate([30.0, math.nan, 30.0, 3.0, 30.0])]
    assert [spike and spike.in_a_row for spike in counts] == [1, 2, 3, None, 1]
    for step in range(100, 200):
        assert watch.look(step, 30.0, 1.0).in_a_row == step - 98


def test_single_norms_of_healthy_trainings_are_none():
    """Recorded: up to nine times as large as the median of the twenty before."""
    assert watching().look(21, 3.0, 9.0) is None
    assert watching().look(21, 3.0, 10.0).limit == pytest.approx(math.exp(15 * 0.15))
    assert watching([3.0] * 20).look(21, 3.0 * 1.34, 1.0) is None
    assert watching([3.0] * 20).look(21, 3.0 * 1.36, 1.0).limit == pytest.approx(3.0 * math.exp(0.3))


@given(st.lists(st.floats(0.1, 10.0), min_size=FEWEST, max_size=30), st.floats(0.001, 1000.0), st.floats(1.0, 30.0))
def test_bounds_scale_with_the_values(values, factor, deviations):
    usual, limit = bounds(values, deviations, 0.02)
    again = bounds([factor * value for value in values], deviations, 0.02)
    assert again == pytest.approx((factor * usual, factor * limit), rel=1e-6)
    assert limit >= usual * math.exp(0.02 * deviations) * (1 - 1e-9)


@given(st.lists(st.floats(0.1, 10.0), min_size=FEWEST, max_size=30), st.randoms())
def test_one_wild_value_moves_the_bound_little(values, random):
    """A median and a median deviation: half of the values must be wild before the usual is."""
    wild = [*sorted(values)[:-1], 1e20]
    random.shuffle(wild)
    assert bounds(wild, 15.0, 0.02)[0] <= max(values) * 1.0001


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60))
def test_whatever_comes_it_answers(values):
    watch = Watch(Guard("skip"))
    for step, value in enumerate(values, start=1):
        spike = watch.look(step, abs(value), abs(value))
        assert spike is not None or math.isfinite(value)


def test_a_spike_of_another_rank_is_followed():
    """It counts in a row with one's own, and what this rank saw does not become usual."""
    watch, alone = watching(), watching()
    assert watch.look(21, 3.0, 1.0) is None
    assert watch.follow(21, 3.0).in_a_row == 1
    assert watch.look(22, 30.0, 1.0).in_a_row == 2
    assert watch.look(23, 3.0, 1.0) is None
    assert watch.follow(23, 3.0).in_a_row == 3
    assert [watch._usual[name][-1] for name in watch._usual] == [alone._usual[name][-1] for name in alone._usual]


def test_one_healthy_outlier_does_not_widen_the_bound():
    watch = watching([3.0] * 20, [1.0] * 10 + [9.0] + [1.0] * 9)
    assert watch.look(21, 3.0, 10.0).what == "grad_norm"


def test_fewer_than_ten_say_nothing():
    assert math.isnan(bounds([1.0] * (FEWEST - 1), 15.0, 0.02)[0])
    assert bounds([1.0] * FEWEST, 15.0, 0.02)[0] == 1.0


def test_zeros_are_values_too():
    watch = watching([0.0] * 20, [0.0] * 20)
    assert watch.look(21, 0.0, 0.0) is None
    assert watch.look(22, 1.0, 0.0).what == "loss"


def test_a_thousand_healthy_steps_raise_nothing():
    """A falling loss with noise of two percent, norms of a heavy tail."""
    random = np.random.default_rng(0)
    losses = (2 + 3 * np.exp(-np.arange(1000) / 100)) * (1 + 0.02 * random.standard_normal(1000))
    norms = np.exp(0.4 * random.standard_t(5, 1000).clip(-5, 5))
    watching(losses.tolist(), norms.tolist())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"policy": "warn"}, "guard.policy='warn' is unknown"),
        ({"consecutive": 0}, "guard.consecutive must be a whole number of at least 1, not 0"),
        ({"window": 5}, "guard.window must be a whole number of at least 10, not 5"),
        ({"deviations": 0.0}, "guard.deviations must be a finite number above 0, not 0.0"),
        ({"deviations": math.nan}, "not nan"),
        ({"deviations": True}, "not True"),
    ],
)
def test_what_cannot_be_is_refused(fields, message):
    with pytest.raises(ScenarioError, match=message):
        Guard(**fields)
