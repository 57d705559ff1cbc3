import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate.calibrate import as_toml, calibrate, round_up
from harness.gate.policy import check_overrides
from tests.gate.builders import make_run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def runs(**series):
    """One run a value; curves are lists of lists."""
    count = len(next(iter(series.values())))
    return [
        make_run(
            curves={name: values[i] for name, values in series.items() if name == "loss"},
            **{name: values[i] for name, values in series.items() if name != "loss"},
        )
        for i in range(count)
    ]


def of(name, *policies, **series):
    return {c.metric.name: c for c in calibrate(runs(**series), *policies)}[name]


def test_a_time_that_scatters_beyond_its_floor_gets_a_wider_one():
    found = of("step_time", step_time=[1.0, 1.05, 0.95, 1.02])
    # Logarithms 0, .0488, -.0513, .0198: standard deviation .0421; three times that, rounded up.
    assert found.scatter == pytest.approx(0.0421, abs=1e-4)
    assert found.proposal == {"relative": 0.13}
    assert of("step_time", step_time=[1.0, 1.001, 0.999]).proposal == {}
    assert of("step_time", {"machine": {"relative": 0.2}}, step_time=[1.0, 1.05, 0.95, 1.02]).proposal == {}
    assert of("compile_time", compile_time=[4.0, 4.3, 3.8]).proposal == {}


def test_runs_beside_others_do_not_tell_of_the_machine():
    alone = runs(step_time=[1.0, 1.01, 0.99])
    disturbed = make_run(step_time=3.0).model_copy(update={"foreign_load": 0.5})
    (found,) = calibrate([*alone, disturbed])
    assert found.proposal == {}
    assert found.scatter == pytest.approx(0.01, rel=0.01)
    (unknown,) = calibrate([*alone[:2], disturbed])
    assert (unknown.scatter, unknown.proposal) == (math.inf, {})


def test_numbers_that_are_the_same_in_every_bit_may_be_held_to_it():
    assert of("loss", loss=[[3.0, 2.0]] * 3).proposal == {"exact": True}
    assert of("loss", {"loss": {"exact": True}}, loss=[[3.0, 2.0]] * 3).proposal == {}
    assert of("parameters", parameters=[5.0] * 3).proposal == {}


def test_numbers_that_scatter_within_their_tolerance_keep_it():
    found = of("peak_memory", peak_memory=[113.0, 114.0, 113.0])
    assert found.scatter == pytest.approx(1 / 113)
    assert found.proposal == {}
    assert of("loss", loss=[[3.0, 2.0], [3.0, 2.0001], [3.0, 2.0]]).proposal == {}


def test_numbers_that_scatter_beyond_their_tolerance_say_so():
    found = of("loss", loss=[[3.0, 2.0], [3.0, 2.01], [3.0, 2.0]])
    assert found.scatter == pytest.approx(0.005)
    assert found.proposal == {"relative": 0.015}


def test_a_metric_that_a_run_lacks_is_left_out():
    made = [make_run(step_time=1.0), make_run(step_time=1.0), make_run(throughput=1.0, step_time=1.0)]
    assert [c.metric.name for c in calibrate(made)] == ["step_time"]


def test_too_few_runs_tell_nothing():
    with pytest.raises(ValueError, match="2 runs tell nothing"):
        calibrate(runs(step_time=[1.0, 2.0]))


def test_proposals_are_configuration_that_the_gate_accepts():
    made = runs(step_time=[1.0, 1.2, 0.8], loss=[[3.0, 2.0]] * 3, peak_memory=[1.0, 100.0, 1.0])
    text = as_toml(calibrate(made), "m", 3)
    assert text.startswith("# 3 runs of unchanged code on m\n")
    policy = tomllib.loads(text)["tool"]["harness"]["policy"]
    check_overrides(policy)
    assert policy["loss"] == {"exact": True}
    assert set(policy) == {"step_time", "loss", "peak_memory"}
    assert calibrate(made, policy)[0].proposal == {}
    assert as_toml([], "m", 3) == ""


@given(st.floats(1e-12, 1e12))
def test_rounding_never_narrows(value):
    rounded = round_up(value)
    assert value <= rounded <= value * 1.11
    assert float(f"{rounded:.1e}") == rounded
    assert round_up(0.0) == 0.0
    assert not math.isnan(rounded)
