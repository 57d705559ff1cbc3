import pytest

from harness.gate import Policy, Status
from harness.gate.judge import judge
from harness.gate.validity import problem
from harness.metrics import METRICS
from tests.gate.builders import make_record, make_run

STEP_TIME, COMPILE_TIME = METRICS["step_time"], METRICS["compile_time"]
STEADY = [9.0, 2.0] + [1.0, 1.01, 0.99, 1.0] * 5
STALLING = [9.0, 2.0] + [1.0, 1.0, 9.0, 9.0] * 5


def run(steps=STEADY, **fields):
    return make_run(step_time=1.0, throughput=1000.0, compile_time=8.0).model_copy(
        update={"step_seconds": steps, **fields}
    )


def test_a_quiet_machine_and_steady_steps_are_no_problem():
    for load in (None, 0.0, 0.1):
        assert problem(STEP_TIME, run(foreign_load=load), Policy(0.05)) is None


def test_a_time_measured_beside_others_is_invalid():
    status, reason = problem(COMPILE_TIME, run(foreign_load=0.35), Policy(0.05))
    assert status is Status.INVALID
    assert "others used 35 % of the cores while it was measured, 10 % allowed" in reason
    assert problem(COMPILE_TIME, run(foreign_load=0.35), Policy(0.05, shared=0.4)) is None


def test_a_device_with_another_process_is_not_ours_alone():
    status, reason = problem(STEP_TIME, run(device_processes=2), Policy(0.05))
    assert status is Status.INVALID
    assert "2 other process(es) were on the devices" in reason


def test_steps_that_scatter_too_widely_say_nothing():
    status, reason = problem(STEP_TIME, run(STALLING), Policy(0.05))
    assert status is Status.INCONCLUSIVE
    assert "scatter over 160 % of their median, 150 % allowed" in reason
    assert problem(STEP_TIME, run(STALLING), Policy(0.05, spread=3.0)) is None
    assert problem(COMPILE_TIME, run(STALLING), Policy(0.05)) is None
    assert problem(STEP_TIME, run(STALLING[:5]), Policy(0.05)) is None


@pytest.mark.parametrize(
    ("steps", "load", "step_time", "expected"),
    [
        (STEADY, 0.0, 1.0, Status.PASS),
        (STEADY, 0.5, 1.0, Status.INVALID),
        (STEADY, 0.5, 9.0, Status.INVALID),
        (STALLING, 0.0, 1.0, Status.INCONCLUSIVE),
        (STALLING, 0.0, 0.1, Status.INCONCLUSIVE),
        (STALLING, 0.0, 9.0, Status.REGRESSED),
    ],
)
def test_validity_comes_first_but_noise_excuses_no_regression(steps, load, step_time, expected):
    record = make_record(make_run(step_time=1.0))
    record.machines["cpu-2c"].metrics["step_time"] *= 10
    found = run(steps, foreign_load=load).model_copy(update={"metrics": {"step_time": step_time}})
    (verdict,) = judge(make_record(found), found, record, {"step_time"})
    assert (verdict.metric, verdict.status) == ("step_time", expected)
    assert verdict.value == step_time


def test_numbers_do_not_mind_company():
    found = make_run(peak_memory=1.0).model_copy(update={"foreign_load": 0.9, "device_processes": 1})
    assert judge(make_record(found), found, make_record(found), None)[0].status is Status.PASS
