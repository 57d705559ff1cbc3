from datetime import date

import pytest

from harness.configuration import Configuration
from harness.errors import PolicyError
from harness.gate import Status
from harness.gate.approve import approval
from harness.gate.baseline import BaselineFile
from harness.gate.checks import Gate
from harness.gate.expected import Expected
from tests.gate.builders import make_record, make_run

RUN = make_run(peak_memory=100.0, throughput=1000.0, curves={"loss": [3.0, 2.0]})


def gate(run=RUN, label="run"):
    return fresh(BaselineFile(runs={label: make_record(run)}))


def fresh(baseline=None, configuration=None):
    return Gate(baseline, configuration or Configuration(), "suites/a/test_x.py::test_x[cpu]")


def test_collects_over_labels_and_sorts_failures_worst_first():
    checked = gate()
    checked.check(RUN)
    worse = make_run(peak_memory=200.0, throughput=1000.0, curves={"loss": [3.0, float("nan")]})
    checked.baseline.runs["second"] = make_record(RUN)
    checked.check(worse, label="second")
    assert [(v.label, v.metric, v.status) for v in checked.failures] == [
        ("second", "loss", Status.INVALID),
        ("second", "peak_memory", Status.REGRESSED),
    ]
    assert len(checked.verdicts) == 6


def test_only_narrows_what_is_checked_and_stored():
    checked = fresh()
    checked.check(RUN, only=["loss"])
    assert [v.metric for v in checked.verdicts] == ["loss"]
    assert list(checked.candidates["run"].curves) == ["loss"]
    assert checked.candidates["run"].metrics == {}


def test_only_of_a_metric_that_the_run_has_not_is_invalid():
    checked = fresh()
    checked.check(RUN, only=["loss", "distinct_1"])
    assert {v.metric: v.status for v in checked.verdicts}["distinct_1"] is Status.INVALID


def test_ratios_travel_with_the_numeric_values():
    checked = fresh()
    checked.check(RUN, only=[], ratios={"peak_memory_ratio": 0.4})
    assert checked.candidates["run"].metrics == {"peak_memory_ratio": 0.4}
    with pytest.raises(PolicyError, match="'peak_memory' is no ratio"):
        fresh().check(RUN, ratios={"peak_memory": 0.4})


def test_a_label_is_used_once():
    checked = gate()
    checked.check(RUN)
    with pytest.raises(PolicyError, match="label 'run' was checked before"):
        checked.check(RUN)


def test_a_misspelt_metric_or_policy_is_refused():
    with pytest.raises(PolicyError, match="did you mean 'loss'"):
        gate().check(RUN, only=["losss"])
    with pytest.raises(PolicyError, match="no field 'rel'"):
        gate().check(RUN, policy={"loss": {"rel": 1}})


def test_a_label_that_is_no_longer_checked_is_invalid():
    checked = gate()
    checked.baseline.runs["second"] = make_record(RUN)
    checked.check(RUN)
    assert checked.failures == []
    checked.close(complete=True)
    assert [(v.label, v.metric, v.status) for v in checked.failures] == [("second", "run", Status.INVALID)]


def test_a_test_that_broke_off_is_not_blamed_for_what_it_did_not_reach():
    checked = gate()
    checked.close(complete=False)
    assert checked.verdicts == []


def test_after_its_end_a_test_checks_nothing_more():
    checked = gate()
    checked.close(complete=True)
    with pytest.raises(PolicyError, match="the test is over"):
        checked.check(RUN)


def test_configuration_and_test_both_have_a_word():
    worse = make_run(peak_memory=120.0, throughput=500.0, curves={"loss": [3.0, 2.0]})
    checked = fresh(gate().baseline, Configuration(policy={"machine": {"lane": "advisory"}}))
    checked.check(worse, policy={"peak_memory": {"relative": 0.5}})
    assert checked.failures == []


class TestTimesThatWereNotMeasured:
    SHARED = make_run(peak_memory=1.0, step_time=1.0).model_copy(update={"foreign_load": 0.5})

    @pytest.mark.parametrize("only", [None, ["step_time"]])
    def test_they_are_invalid_also_where_nothing_is_approved(self, only):
        checked = fresh()
        checked.check(self.SHARED, only=only)
        found = {v.metric: v for v in checked.verdicts}["step_time"]
        assert (found.status, found.fails) == (Status.INVALID, True)
        assert found.value == 1.0

    def test_they_are_no_candidates(self):
        checked = fresh()
        checked.check(self.SHARED)
        assert checked.candidates["run"].machines[self.SHARED.machine].metrics == {"step_time": []}


class TestSettling:
    def settle(self, checked, status):
        asked = []

        def confirm(run, suspicions):
            asked.append([verdict.metric for verdict, _, _ in suspicions])
            return [verdict.model_copy(update={"status": status}) for verdict, _, _ in suspicions]

        checked.settle(confirm)
        return asked

    def test_only_suspicious_times_are_run_again_and_their_verdicts_replaced(self):
        checked = fresh()
        checked.check(
            make_run(peak_memory=1.0, step_time=1.0, throughput=5.0), policy={"throughput": {"lane": "advisory"}}
        )
        assert self.settle(checked, Status.REGRESSED) == [["step_time"]]
        assert {v.metric: v.status for v in checked.verdicts} == {
            "peak_memory": Status.NO_BASELINE,
            "step_time": Status.REGRESSED,
            "throughput": Status.NO_BASELINE,
        }

    def test_an_expected_failure_stays_expected_when_confirmed(self):
        entry = Expected(test="test_x", metric="step_time", reason="known", until=date(2999, 1, 1))
        checked = fresh(configuration=Configuration(expected=(entry,)))
        checked.check(make_run(step_time=1.0))
        self.settle(checked, Status.REGRESSED)
        assert [v.status for v in checked.verdicts] == [Status.XFAIL]

    def test_recent_runs_are_those_since_the_approval(self):
        asked = []
        record = make_record(make_run(step_time=1.0))
        stamp = approval("Ada", "why", "")
        record.machines["cpu-2c"].approved = stamp
        baseline = BaselineFile(runs={"run": record})
        checked = Gate(baseline, Configuration(), "x", lambda label, run, since: asked.append((label, since)) or {})
        checked.check(make_run(step_time=1.0))
        assert asked == [("run", stamp.when)]
