import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ScenarioError
from harness.faults import FAULTS, Fault


@given(st.sampled_from(sorted(FAULTS)), st.floats(1e-3, 1e3))
def test_text_round_trip(name, amount):
    fault = Fault.parse(f"{name}={amount:g}")
    assert Fault.parse(str(fault)) == fault


def test_amount_has_a_default():
    assert Fault.parse("slow_step") == Fault("slow_step", 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [("slow_steps", "did you mean 'slow_step'"), ("", "faults are"), ("nan=x", "'x' is no number")],
)
def test_refuses_what_it_does_not_know(text, message):
    with pytest.raises(ScenarioError, match=message):
        Fault.parse(text)
