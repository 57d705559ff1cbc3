import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.environment import Host
from harness.errors import Undefined
from harness.external import External
from harness.observed import observed
from harness.readers.log import Reading

HOST = Host("ascend", "aarch64", "pod")


def run(curves, **fields):
    return observed(Reading(curves=curves), External(name="a", **fields), HOST, "2.10.0")


@given(st.dictionaries(st.integers(1, 10**6), st.floats(allow_nan=False), min_size=1))
def test_a_curve_is_in_the_order_of_its_steps_and_keeps_them(curve):
    found = run({"loss": curve})
    assert dict(zip(found.steps["loss"], found.curves["loss"], strict=True)) == curve
    assert found.steps["loss"] == sorted(curve)


def test_speed_is_that_of_the_steady_steps():
    found = run({"step_time": {1: 9.0, 2: 5.0, 3: 2.0, 4: 2.0}}, tokens_per_step=100)
    assert (found["step_time"], found["throughput"]) == (2.0, 50.0)
    assert "throughput" not in run({"step_time": {1: 9.0, 2: 5.0, 3: 2.0}}).metrics
    assert run({"step_time": {1: 9.0, 2: 5.0}}).metrics == {}


def test_what_a_device_achieves_is_what_all_do():
    assert run({"achieved_flops": {1: 1.0, 2: 1.0, 3: 4.0, 4: 6.0}}, ranks=8)["achieved_flops"] == 40.0


def test_a_curve_that_nobody_knows_is_told_and_not_compared():
    found = run({"loss": {1: 1.0}, "load_balance": {1: 1.0}})
    assert found.curves.keys() == {"loss"}
    assert found.warnings == ["load_balance: no curve of that name is compared"]


def test_a_thousand_curves_that_nobody_knows_make_one_line():
    found = run({"loss": {1: 1.0}, **{f"x{i:03}": {1: 1.0} for i in range(400)}})
    assert found.warnings == [
        f"{', '.join(f'x{i:03}' for i in range(10))} and 390 more: no curve of that name is compared"
    ]


def test_each_attempt_has_its_warm_up():
    times = {1: 9.0, 2: 9.0, 3: 1.0, 4: 1.0, 5: 60.0, 6: 60.0, 7: 1.0}
    found = observed(Reading(curves={"step_time": times}, restarts=[5]), External(name="a"), HOST, "2.10.0")
    assert found["step_time"] == 1.0


@pytest.mark.parametrize("bad", [float("nan"), -1.0, float("inf")])
def test_a_time_that_is_none_costs_the_times_alone(bad):
    found = run({"loss": {5: 1.0}, "step_time": {5: 1.0, 6: bad, 7: 1.0, 8: 1.0}}, tokens_per_step=10)
    assert found.curves["loss"] == [1.0]
    assert found.undefined["step_time"].startswith("step 6 took")
    assert found.undefined["throughput"] == found.undefined["step_time"]


def test_a_throughput_that_was_asked_for_and_can_not_be_had_is_told():
    assert "no steady step" in run({"loss": {1: 1.0}}, tokens_per_step=10).undefined["throughput"]


def test_a_command_of_more_ranks_than_cores_is_not_gated_by_time():
    host = Host("cpu", "x86_64", "m", cores=2)
    found = observed(Reading(curves={"loss": {1: 1.0}}), External(command=["a"], ranks=4), host, "2.10.0")
    assert found.oversubscribed.startswith("4 ranks share 2 cores")


def test_what_could_not_be_read_is_told():
    reading = Reading(curves={"loss": {1: 1.0}}, lines=3, unread=1, examples=["line 2: no loss in 'x'"], repeated=[7])
    warnings = observed(reading, External(name="a"), HOST, "2.10.0").warnings
    assert any("1 of 3 lines speak of a step and can't be read: line 2" in text for text in warnings)
    assert any("came more than once" in text for text in warnings)


def test_a_run_of_others_has_no_host_memory():
    with pytest.raises(Undefined):
        _ = run({"loss": {1: 1.0}}).host_memory_growth
