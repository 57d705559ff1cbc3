import pytest

from harness import Scenario
from harness.errors import BaselineError
from harness.gate import Status, Verdict
from harness.gate.approve import approval, changed_scopes, merge
from harness.gate.baseline import BaselineFile
from tests.gate.builders import make_record, make_run

STAMP = approval("Ada", "first values", "abc")


def record(**fields):
    return make_record(make_run(**fields))


def test_an_approval_says_who_and_why():
    assert (STAMP.by, STAMP.reason, STAMP.commit) == ("Ada", "first values", "abc")
    assert STAMP.when.endswith("Z")
    for by, reason in (("", "x"), ("Ada", " ")):
        with pytest.raises(BaselineError, match="an approval needs a"):
            approval(by, reason, "")


def test_first_values_are_taken_whole():
    new = record(peak_memory=1.0, throughput=2.0)
    merged = merge(None, {"run": new}, STAMP, {"run": {"numeric"}})
    assert merged.runs["run"].machines == new.machines
    assert merged.runs["run"].approved == STAMP


def test_only_the_scope_that_changed_is_replaced_and_the_old_value_is_told():
    old = BaselineFile(runs={"run": record(peak_memory=1.0, throughput=2.0), "other": record(peak_memory=5.0)})
    new = {"run": record(peak_memory=3.0, throughput=4.0)}
    numeric = merge(old, new, STAMP, {"run": {"numeric"}}).runs
    assert numeric["run"].metrics == {"peak_memory": 3.0}
    assert numeric["run"].machines == {"cpu-2c": {"throughput": [2.0]}}
    assert numeric["run"].approved.replaces == {"peak_memory": 1.0}
    assert numeric["other"] == old.runs["other"]
    times = merge(old, new, STAMP, {"run": {"machine"}}).runs["run"]
    assert times.metrics == {"peak_memory": 1.0}
    assert times.machines == {"cpu-2c": {"throughput": [4.0]}}


def test_times_of_other_machines_stay():
    old = BaselineFile(runs={"run": record(machine="fast", throughput=9.0)})
    merged = merge(old, {"run": record(throughput=2.0)}, STAMP, {"run": {"machine"}})
    assert merged.runs["run"].machines == {"fast": {"throughput": [9.0]}, "cpu-2c": {"throughput": [2.0]}}


def test_another_scenario_replaces_everything():
    old = BaselineFile(runs={"run": record(machine="fast", throughput=9.0)})
    new = record(scenario=Scenario(steps=7), throughput=2.0)
    assert merge(old, {"run": new}, STAMP, {"run": {"numeric"}}).runs["run"].machines == {
        "cpu-2c": {"throughput": [2.0]}
    }


@pytest.mark.parametrize(
    "bad", [{"peak_memory": float("nan")}, {"throughput": float("inf")}, {"curves": {"loss": [1.0, float("nan")]}}]
)
def test_a_non_finite_value_is_refused(bad):
    with pytest.raises(BaselineError, match="that is no baseline"):
        merge(None, {"run": record(**bad)}, STAMP, {"run": {"numeric"}})


def test_what_passed_needs_no_approval():
    passed = Verdict(metric="loss", status=Status.PASS)
    assert changed_scopes([passed]) == set()
    assert changed_scopes([passed, Verdict(metric="loss", status=Status.IMPROVED)]) == {"numeric"}
    assert changed_scopes([Verdict(metric="throughput", scope="machine", status=Status.NO_BASELINE)]) == {"machine"}
    assert changed_scopes([Verdict(metric="loss", status=Status.PASS, reason="environment changed (x)")]) == {"numeric"}
