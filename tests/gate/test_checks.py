import pytest

from harness.configuration import Configuration
from harness.errors import PolicyError
from harness.gate import Status
from harness.gate.baseline import BaselineFile
from harness.gate.checks import Gate
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
