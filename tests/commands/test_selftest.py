"""The selftest with real trainings of the smallest model, and its judgement of made runs."""

import pytest
from typer.testing import CliRunner

from harness import Scenario, cli
from harness.commands import selftest
from harness.commands.selftest import Finding, reach
from harness.errors import HarnessError
from tests.gate.builders import make_run

SCENARIO = """
from harness import Scenario

NANO = Scenario(model="nano", steps=12, batch=8, sequence=32, warmup_steps=2, eval_sequences=16, samples=8)
"""


def test_what_counts_as_a_broken_claim():
    assert Finding("x", claimed=True, caught=False, outcome="").broken
    assert not Finding("x", claimed=False, caught=False, outcome="").broken
    assert not Finding("x", claimed=True, caught=True, outcome="").broken


@pytest.mark.parametrize(("slow", "alarms", "broken"), [(0, 0, False), (1, 1, False), (2, 2, True)])
def test_one_false_alarm_is_chance_and_two_are_not(slow, alarms, broken):
    times = [1.0] * (8 - slow) + [9.0, 0.1][:slow]
    runs = [make_run(step_time=time, peak_memory=100.0 if i < 8 - slow else 200.0) for i, time in enumerate(times)]
    found = selftest._false_alarms(runs, {})
    assert found.broken is broken
    assert found.outcome.startswith(f"{alarms} false alarm(s) in 8 runs")


def test_a_fault_that_a_metric_does_not_show_is_missed_by_name():
    healthy = make_run(peak_memory=100.0, distinct_2=0.9)
    baseline = selftest._baseline([healthy])
    larger = make_run(peak_memory=164.0, distinct_2=0.9)
    found = selftest._number("memory=64", {"peak_memory", "distinct_2"}, larger, baseline, {})
    assert found.broken
    assert found.outcome == "missed in distinct_2"


def test_the_projects_own_gate_is_tested_whatever_its_lanes():
    policy = {"peak_memory": {"lane": "advisory", "relative": 0.7}, "machine": {"lane": "advisory"}}
    baseline = selftest._baseline([make_run(peak_memory=100.0)])
    assert selftest._number("m", {"peak_memory"}, make_run(peak_memory=180.0), baseline, policy).caught
    assert not selftest._number("m", {"peak_memory"}, make_run(peak_memory=160.0), baseline, policy).caught


def test_so_much_memory_is_planted_that_the_tolerance_must_notice():
    assert selftest._noticeable(make_run(peak_memory=100.0), {}) == 64
    assert selftest._noticeable(make_run(peak_memory=2048.0), {}) == 205
    assert selftest._noticeable(make_run(peak_memory=100.0), {"peak_memory": {"relative": 0.5}}) == 100


def test_what_has_no_effect_in_a_scenario_is_not_claimed(monkeypatch):
    """No sampling: a degenerate generator shows nowhere. An odd batch: no two ranks."""
    scenario = Scenario(batch=3, samples=0)
    runs = [make_run(scenario=scenario, peak_memory=100.0, step_time=1.0) for _ in range(3)]
    bench = selftest.Bench("cpu", None, None, {})
    monkeypatch.setattr(selftest.Bench, "run", lambda self, scenario, fault=None: runs[0])
    found = {f.planted: f for f in selftest.selftest(bench, scenario, runs, confirming=False)}
    for fault in ("degenerate_generator", "dropped_reduction"):
        assert not found[fault].claimed
        assert found[fault].outcome.startswith("not planted")


def test_what_is_claimed_is_said(tmp_path):
    line = reach([make_run(step_time=time) for time in (1.0, 1.001, 0.999)], {})
    assert line.startswith("after 3 runs the screen alone claims slowdowns from ")
    assert line.endswith("with confirmation from 5 %")
    with pytest.raises(HarnessError, match="too few steps for a step_time"):
        reach([make_run(peak_memory=1.0)], {})


@pytest.mark.nightly
def test_real_faults_are_caught_in_real_runs(tmp_path, monkeypatch):
    """Times are not asserted on: other tests run beside this one, and then a time is INVALID, as it should be."""
    (tmp_path / "nano_scenario.py").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    arguments = ["selftest", "--runs", "3", "--no-confirm", "--scenario", "nano_scenario:NANO"]
    done = CliRunner().invoke(cli.app, arguments)
    lines = {line[24:50].strip(): line for line in done.output.splitlines()[1:]}
    for fault in selftest.PLANTED:
        planted = "memory=64" if fault == "memory" else fault
        assert lines[planted].startswith("caught"), done.output
    for slowdown in ("2 %", "5 %", "10 %", "20 %"):
        assert f"every step {slowdown} slower" in lines
