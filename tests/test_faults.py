import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Layout, Scenario
from harness.errors import ScenarioError
from harness.faults import FAULTS, Fault


@given(st.sampled_from(sorted(FAULTS)), st.floats(1e-3, 1e3))
def test_text_round_trip(name, amount):
    fault = Fault.parse(f"{name}={amount!r}")
    assert Fault.parse(str(fault)) == fault


def test_amount_has_a_default():
    assert Fault.parse("slow_step") == Fault("slow_step", 1.0)


@pytest.mark.parametrize(
    ("fault", "scenario", "applies"),
    [
        ("nan=20", Scenario(steps=20), True),
        ("nan=21", Scenario(steps=20), False),
        ("dropped_reduction", Scenario(), False),
        ("dropped_reduction", Scenario(layout=Layout(dp=2)), True),
        ("degenerate_generator", Scenario(), False),
        ("degenerate_generator", Scenario(samples=1), True),
        ("slow_step", Scenario(), True),
        ("slow_rank", Scenario(), False),
        ("slow_rank", Scenario(layout=Layout(dp=2)), True),
    ],
)
def test_a_fault_without_effect_is_not_planted(fault, scenario, applies):
    assert Fault.parse(fault).applies(scenario) is applies


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slow_steps", "did you mean 'slow_step'"),
        ("", "faults are"),
        ("memory=inf", "no positive number"),
        ("slow_step=-1", "no positive number"),
        ("nan=x", "'x' is no positive number"),
    ],
)
def test_refuses_what_it_does_not_know(text, message):
    with pytest.raises(ScenarioError, match=message):
        Fault.parse(text)
