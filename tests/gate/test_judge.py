from types import MappingProxyType

from harness import Scenario
from harness.gate import Status
from harness.gate.judge import judge
from tests.gate.builders import make_record, make_run


def verdicts(run, record, only=None, *policies):
    return {v.metric: v for v in judge(make_record(run), run, record, only, *policies)}


def statuses(run, record, only=None):
    return {name: v.status for name, v in verdicts(run, record, only).items()}


BASE = {"peak_memory": 100.0, "validation_perplexity": 20.0, "throughput": 1000.0}


def test_a_run_equal_to_its_record_passes():
    run = make_run(**BASE, curves={"loss": [3.0, 2.0]})
    assert set(statuses(run, make_record(run)).values()) == {Status.PASS}
    assert len(statuses(run, make_record(run))) == 4


def test_another_scenario_is_refused_before_any_number():
    record = make_record(make_run(Scenario(steps=10), **BASE))
    found = judge(make_record(make_run(**BASE)), make_run(**BASE), record, None)
    assert [(v.metric, v.status) for v in found] == [("scenario", Status.INVALID)]
    assert "steps: 10 → 20" in found[0].reason
    assert found[0].fails


def test_a_record_of_a_scenario_that_no_longer_exists_is_refused():
    record = make_record(make_run(Scenario(steps=10), **BASE)).model_copy(update={"scenario": {"stepz": 3}})
    found = judge(make_record(make_run(**BASE)), make_run(**BASE), record, None)
    assert found[0].status is Status.INVALID
    assert "no field 'stepz'" in found[0].reason


def test_new_and_missing_metrics_have_their_own_verdicts():
    record = make_record(make_run(peak_memory=100.0, distinct_1=0.5))
    found = statuses(make_run(peak_memory=100.0, distinct_2=0.5), record)
    assert found == {"peak_memory": Status.PASS, "distinct_1": Status.INVALID, "distinct_2": Status.NO_BASELINE}


def test_no_metric_in_common_is_a_failure():
    record = make_record(make_run(distinct_1=0.5))
    found = verdicts(make_run(peak_memory=100.0), record)
    assert all(v.fails for v in found.values())


def test_nothing_to_compare_is_a_failure():
    found = judge(make_record(make_run()), make_run(), make_record(make_run()), None)
    assert [v.status for v in found] == [Status.INVALID]


def test_without_a_record_all_is_new_and_times_do_not_fail():
    found = verdicts(make_run(**BASE), None)
    assert {v.status for v in found.values()} == {Status.NO_BASELINE}
    assert found["peak_memory"].fails
    assert not found["throughput"].fails


def test_times_of_another_machine_are_not_compared():
    record = make_record(make_run(machine="fast", **BASE))
    found = verdicts(make_run(**{**BASE, "throughput": 1.0}), record)
    assert found["throughput"].status is Status.NO_BASELINE
    assert not found["throughput"].fails
    assert found["peak_memory"].status is Status.PASS


def test_times_are_screened_by_the_runs_of_their_machine():
    run = make_run(throughput=850.0)
    record = make_record(run)
    record.machines["cpu-2c"].metrics["throughput"] = [1000.0]
    assert statuses(run, record) == {"throughput": Status.PASS}
    record.machines["cpu-2c"].metrics["throughput"] = [1000.0] * 10
    assert statuses(run, record) == {"throughput": Status.REGRESSED}


def test_numbers_that_move_with_the_environment_say_both():
    record = make_record(make_run(mindspore="2.9.0", **BASE))
    moved = verdicts(make_run(**{**BASE, "peak_memory": 200.0}), record)
    assert moved["peak_memory"].status is Status.ENVIRONMENT_CHANGED
    assert moved["peak_memory"].fails
    assert "beyond tolerance" in moved["peak_memory"].reason
    assert "mindspore: 2.9.0 → 2.10.0" in moved["peak_memory"].reason
    assert moved["validation_perplexity"].status is Status.PASS
    assert moved["validation_perplexity"].environment_changes == ["mindspore: 2.9.0 → 2.10.0"]
    assert moved["throughput"].environment_changes == ["mindspore: 2.9.0 → 2.10.0"]


def test_a_slowdown_after_an_upgrade_says_both_and_what_changed():
    before = make_run(mindspore="2.9.0", throughput=1000.0)
    record = make_record(before)
    record.machines["cpu-2c"].metrics["throughput"] *= 10
    found = verdicts(make_run(throughput=500.0), record)["throughput"]
    assert found.status is Status.ENVIRONMENT_CHANGED
    assert "outside" in found.reason
    assert "the environment changed (mindspore: 2.9.0 → 2.10.0)" in found.reason


def test_threads_and_driver_explain_what_moved_and_are_no_change_by_themselves():
    def run(threads, driver, **values):
        made = make_run(**values)
        return made.model_copy(
            update={"environment": made.environment.model_copy(update={"threads": threads, "driver": driver})}
        )

    record = make_record(run(2, "1.0", peak_memory=100.0))
    same = verdicts(run(4, "2.0", peak_memory=100.0), record)["peak_memory"]
    assert (same.status, same.environment_changes) == (Status.PASS, [])
    moved = verdicts(run(4, "2.0", peak_memory=300.0), record)["peak_memory"]
    assert moved.status is Status.ENVIRONMENT_CHANGED
    assert "threads: 2 → 4; driver: 1.0 → 2.0" in moved.reason
    unknown = verdicts(run(None, None, peak_memory=300.0), record)["peak_memory"]
    assert unknown.status is Status.REGRESSED


def test_exact_numbers_are_exact_where_they_were_approved_and_tolerant_elsewhere():
    record = make_record(make_run(curves={"loss": [2.0, 1.0]}))
    exact = {"loss": {"exact": True}}
    near = {"curves": {"loss": [2.0, 1.0001]}}
    assert verdicts(make_run(curves={"loss": [2.0, 1.0]}), record, None, exact)["loss"].status is Status.PASS
    here = verdicts(make_run(**near), record, None, exact)["loss"]
    assert (here.status, here.step) == (Status.REGRESSED, 2)
    assert "0 allowed, exact" in here.reason
    assert verdicts(make_run(machine="fast", **near), record, None, exact)["loss"].status is Status.PASS
    assert verdicts(make_run(mindspore="2.9.0", **near), record, None, exact)["loss"].status is Status.PASS
    assert verdicts(make_run(**near), record)["loss"].status is Status.PASS


def test_what_a_test_checks_no_longer_is_told_but_not_for_another_machine():
    run = make_run(peak_memory=1.0, step_time=2.0)
    here, there = make_record(run), make_record(make_run(machine="fast", peak_memory=1.0, step_time=2.0))
    narrowed = make_record(make_run(peak_memory=1.0))
    found = judge(narrowed, run, here, {"peak_memory"})
    assert {v.metric: v.status for v in found} == {"peak_memory": Status.PASS, "step_time": Status.INVALID}
    assert "checks it no longer" in found[1].reason
    assert {v.metric: v.status for v in judge(narrowed, run, there, {"peak_memory"})} == {"peak_memory": Status.PASS}


def test_an_undefined_metric_is_invalid_with_its_reason():
    run = make_run(peak_memory=1.0, undefined={"throughput": "no steady step: 1 steps were run"})
    found = verdicts(run, make_record(make_run(peak_memory=1.0, throughput=3.0)))
    assert found["throughput"].status is Status.INVALID
    assert found["throughput"].reason.startswith("no steady step")


def test_an_undefined_metric_that_was_not_asked_for_is_left_alone():
    run = make_run(peak_memory=1.0, undefined={"throughput": "no steady step"})
    record = make_record(make_run(peak_memory=1.0))
    assert statuses(run, record, only={"peak_memory"}) == {"peak_memory": Status.PASS}
    assert statuses(run, record, only={"peak_memory", "throughput"})["throughput"] is Status.INVALID


def test_policies_reach_the_comparison():
    run, record = make_run(peak_memory=150.0), make_record(make_run(peak_memory=100.0))
    assert verdicts(run, record)["peak_memory"].fails
    assert not verdicts(run, record, None, {"peak_memory": {"relative": 0.6}})["peak_memory"].fails
    assert not verdicts(run, record, None, {"numeric": {"lane": "advisory"}})["peak_memory"].fails


class TestRecordedSteps:
    """Curves of logs, which may lack steps."""

    @staticmethod
    def run(curve):
        run = make_run(curves={"loss": list(curve.values())})
        run.steps = {"loss": list(curve)}
        return run

    def judged(self, now, before, **policy):
        found = verdicts(self.run(now), make_record(self.run(before)), None, {"loss": policy} if policy else {})
        return found["loss"]

    BEFORE = MappingProxyType({10: 5.0, 20: 4.0, 30: 3.0, 40: 2.0})

    def test_a_lost_line_shifts_nothing_and_is_invalid(self):
        found = self.judged({10: 5.0, 30: 3.0, 40: 2.0}, self.BEFORE)
        assert (found.status, found.step) == (Status.INVALID, 40)
        assert "1 of the baseline's 4 steps are missing, the first is 20; 0 allowed (missing_steps)" in found.reason

    def test_it_passes_where_the_project_allows_it(self):
        assert self.judged({10: 5.0, 30: 3.0, 40: 2.0}, self.BEFORE, missing_steps=1).status is Status.PASS
        assert self.judged({10: 5.0, 40: 2.0}, self.BEFORE, missing_steps=1).status is Status.INVALID

    def test_a_step_that_is_worse_is_named_by_its_number(self):
        found = self.judged({10: 5.0, 30: 3.5, 40: 2.0}, self.BEFORE, missing_steps=9)
        assert (found.status, found.step, found.value, found.baseline) == (Status.REGRESSED, 30, 3.5, 3.0)
        assert "1 of 3 steps deviate, first at step 30" in found.reason
        assert (found.approved, found.steps) == ([5.0, 3.0, 2.0], [10, 30, 40])

    def test_missing_steps_excuse_no_regression(self):
        assert self.judged({10: 6.0}, self.BEFORE).status is Status.REGRESSED

    def test_steps_beyond_the_baseline_are_invalid_too(self):
        found = self.judged({**self.BEFORE, 50: 1e6}, self.BEFORE)
        assert found.status is Status.INVALID
        assert "1 steps are not in the baseline, the first is 50; 0 allowed" in found.reason
        assert self.judged({**self.BEFORE, 50: 1e6}, self.BEFORE, missing_steps=1).status is Status.PASS
        assert self.judged({10: 5.0, 20: 4.0, 30: 3.0, 50: 1.0}, self.BEFORE, missing_steps=1).status is Status.INVALID

    def test_what_is_no_number_is_invalid_wherever_it_stands(self):
        found = self.judged({**self.BEFORE, 50: float("nan")}, self.BEFORE)
        assert (found.status, found.step) == (Status.INVALID, 50)

    def test_no_step_in_common_is_invalid(self):
        found = self.judged({11: 5.0}, self.BEFORE)
        assert found.status is Status.INVALID
        assert found.reason.startswith("no step of the baseline is there")

    def test_without_a_baseline_the_last_step_is_named(self):
        run = self.run(self.BEFORE)
        assert verdicts(run, None)["loss"].step == 40
