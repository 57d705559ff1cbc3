import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import PolicyError
from harness.gate.policy import Policy, check_overrides, find_metric, resolve
from harness.metrics import METRICS


def test_the_nearest_word_wins():
    metric = METRICS["throughput"]
    assert resolve(metric).relative == 0.05
    project = {"machine": {"lane": "advisory", "relative": 0.2}, "throughput": {"relative": 0.3}}
    assert resolve(metric, project) == Policy(0.3, 0.0, 0, "advisory")
    assert resolve(metric, project, {"machine": {"relative": 0.4}}) == Policy(0.4, 0.0, 0, "advisory")
    assert resolve(METRICS["step_time"], project).relative == 0.2
    assert resolve(METRICS["loss"], project).lane == "gating"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"los": {"relative": 1}}, "metric 'los' is unknown; did you mean 'loss'"),
        ({"loss": {"relativ": 1}}, "policy of 'loss' has no field 'relativ'; fields are relative"),
        ({"loss": {"relative": -1}}, "relative=-1 must be a finite number"),
        ({"loss": {"relative": float("nan")}}, "must be a finite number"),
        ({"loss": {"relative": "5%"}}, "relative='5%' must be a finite number"),
        ({"loss": {"deviating_steps": 0.5}}, "deviating_steps=0.5 must be a whole number"),
        ({"machine": {"lane": "off"}}, "lane='off' is unknown; choose gating or advisory"),
        ({"ratio": {"lane": "off"}}, "lane='off' is unknown"),
        ({"loss": 3}, "must be a table of fields, not 3"),
    ],
)
def test_configuration_that_cannot_be_applied_is_refused(overrides, message):
    with pytest.raises(PolicyError, match=message):
        check_overrides(overrides)


@given(st.sampled_from(sorted(METRICS)))
def test_every_metric_has_a_policy_and_a_ratio(name):
    assert resolve(METRICS[name]).lane == "gating"
    check_overrides({name: {"relative": 0.5}, f"{name}_ratio": {"relative": 0.5}})
    ratio = find_metric(f"{name}_ratio")
    assert (ratio.scope, ratio.direction) == ("ratio", METRICS[name].direction)


def test_names_units_and_descriptions_are_there():
    for name, metric in METRICS.items():
        assert name == metric.name
        assert metric.description.endswith(".")
