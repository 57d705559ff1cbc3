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
    assert found.warnings == ["load_balance: no metric of that name, so nothing compares it"]


def test_what_could_not_be_read_is_told():
    reading = Reading(curves={"loss": {1: 1.0}}, lines=3, unread=1, examples=["line 2: no loss in 'x'"], repeated=[7])
    warnings = observed(reading, External(name="a"), HOST, "2.10.0").warnings
    assert any("1 of 3 lines speak of a step and can't be read: line 2" in text for text in warnings)
    assert any("came more than once" in text for text in warnings)


def test_a_run_of_others_has_no_host_memory():
    with pytest.raises(Undefined):
        _ = run({"loss": {1: 1.0}}).host_memory_growth
