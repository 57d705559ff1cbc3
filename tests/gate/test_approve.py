import pytest

from harness import Scenario
from harness.errors import BaselineError
from harness.gate.approve import MOST_APPROVALS, approval, improvements, merge, moved_scopes
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


def times(merged, label="run"):
    return {machine: found.metrics for machine, found in merged.runs[label].machines.items()}


def test_first_values_are_taken_whole():
    new = record(peak_memory=1.0, throughput=2.0)
    merged = merge(None, {"run": new}, STAMP, {"run": {"numeric"}})
    assert times(merged) == {"cpu-2c": {"throughput": [2.0]}}
    assert merged.runs["run"].approved == STAMP
    assert merged.runs["run"].machines["cpu-2c"].approved == STAMP


def test_only_the_scope_that_moved_is_replaced_and_the_old_value_is_told():
    first = {"run": record(peak_memory=1.0, throughput=2.0), "other": record(peak_memory=5.0)}
    old = merge(None, first, STAMP, {"run": {"numeric"}, "other": {"numeric"}})
    new = {"run": record(peak_memory=3.0, throughput=4.0), "other": first["other"]}
    again = approval("Bob", "second", "def")
    numeric = merge(old, new, again, {"run": {"numeric"}})
    assert numeric.runs["run"].metrics == {"peak_memory": 3.0}
    assert times(numeric) == {"cpu-2c": {"throughput": [2.0]}}
    assert (numeric.runs["run"].approved.by, numeric.runs["run"].approved.replaces) == ("Bob", {"peak_memory": 1.0})
    assert numeric.runs["other"] == old.runs["other"]
    machine = merge(old, new, again, {"run": {"machine"}})
    assert machine.runs["run"].metrics == {"peak_memory": 1.0}
    assert machine.runs["run"].approved == STAMP
    assert times(machine) == {"cpu-2c": {"throughput": [4.0]}}
    assert machine.runs["run"].machines["cpu-2c"].approved.replaces == {"throughput": 2.0}


def test_times_of_other_machines_stay():
    old = BaselineFile(runs={"run": record(machine="fast", throughput=9.0)})
    merged = merge(old, {"run": record(throughput=2.0)}, STAMP, {"run": {"machine"}})
    assert times(merged) == {"fast": {"throughput": [9.0]}, "cpu-2c": {"throughput": [2.0]}}


def test_another_scenario_replaces_everything():
    old = BaselineFile(runs={"run": record(machine="fast", throughput=9.0)})
    new = record(scenario=Scenario(steps=7), throughput=2.0)
    assert times(merge(old, {"run": new}, STAMP, {"run": {"numeric"}})) == {"cpu-2c": {"throughput": [2.0]}}


def test_a_label_that_is_no_longer_checked_goes():
    old = BaselineFile(runs={"run": record(peak_memory=1.0), "gone": record(peak_memory=2.0)})
    merged = merge(old, {"run": record(peak_memory=1.0)}, STAMP, {})
    assert list(merged.runs) == ["run"]
    assert merged.runs["run"] == old.runs["run"]


@pytest.mark.parametrize(
    "bad", [{"peak_memory": float("nan")}, {"throughput": float("inf")}, {"curves": {"loss": [1.0, float("nan")]}}]
)
def test_a_non_finite_value_is_refused(bad):
    with pytest.raises(BaselineError, match="that is no baseline"):
        merge(None, {"run": record(**bad)}, STAMP, {"run": {"numeric"}})


def test_scopes_that_moved():
    fields = {"peak_memory": 1.0, "throughput": 2.0, "curves": {"loss": [1.0]}}
    old = record(**fields)
    assert moved_scopes(None, old) == {"numeric", "machine", "samples"}
    assert moved_scopes(old, old) == set()
    assert moved_scopes(old, record(**{**fields, "throughput": 3.0})) == {"machine", "samples"}
    assert moved_scopes(old, record(**{**fields, "curves": {"loss": [2.0]}})) == {"numeric"}
    assert moved_scopes(old, record(**fields, mindspore="2.11")) == {"numeric"}
    assert moved_scopes(old, record(**fields, scenario=Scenario(steps=7))) == {"numeric", "machine", "samples"}


def test_samples_are_added_and_bounded():
    merged = merge(None, {"run": record(throughput=0.5)}, STAMP, {"run": {"samples"}})
    for i in range(1, 25):
        merged = merge(merged, {"run": record(throughput=float(i))}, STAMP, {"run": {"samples"}})
    assert times(merged) == {"cpu-2c": {"throughput": [float(i) for i in range(5, 25)]}}
    replaced = merge(merged, {"run": record(throughput=9.0)}, STAMP, {"run": {"machine"}})
    assert times(replaced) == {"cpu-2c": {"throughput": [9.0]}}


def test_samples_of_another_environment_replace_and_are_not_mixed():
    merged = merge(None, {"run": record(throughput=1.0, mindspore="2.9.0")}, STAMP, {"run": {"samples"}})
    merged = merge(merged, {"run": record(throughput=2.0, mindspore="2.9.0")}, STAMP, {"run": {"samples"}})
    assert times(merged) == {"cpu-2c": {"throughput": [1.0, 2.0]}}
    merged = merge(merged, {"run": record(throughput=3.0)}, STAMP, {"run": {"samples"}})
    assert times(merged) == {"cpu-2c": {"throughput": [3.0]}}
    assert merged.runs["run"].machines["cpu-2c"].approved.replaces == {"throughput": 1.5}


def test_old_values_stay_in_a_bounded_history():
    merged = None
    for i in range(MOST_APPROVALS + 3):
        new = record(peak_memory=float(i), throughput=float(i + 1), curves={"loss": [9.0, float(i)]})
        stamp = approval("Ada", f"reason {i}", "abc")
        merged = merge(merged, {"run": new}, stamp, {"run": {"numeric", "machine"}})
    run = merged.runs["run"]
    assert run.approved.replaces == {"peak_memory": 11.0, "loss": 11.0}
    assert [past.reason for past in run.history] == [f"reason {i}" for i in range(11, 1, -1)]
    assert run.history[0].replaces == {"peak_memory": 10.0, "loss": 10.0}
    assert len(run.machines["cpu-2c"].history) == MOST_APPROVALS
    assert run.machines["cpu-2c"].history[0].replaces == {"throughput": 11.0}


def test_improvements_take_nothing_else():
    former = record(peak_memory=2.0, validation_perplexity=5.0, throughput=1.0, step_time=1.0)
    new = record(peak_memory=1.0, validation_perplexity=9.0, throughput=2.0, step_time=3.0)
    kept = improvements(new, former, {"peak_memory", "throughput"})
    assert kept.metrics == {"peak_memory": 1.0, "validation_perplexity": 5.0}
    assert kept.machines["cpu-2c"].metrics == {"throughput": [2.0], "step_time": []}
    merged = merge(BaselineFile(runs={"run": former}), {"run": kept}, STAMP, {"run": {"numeric", "machine"}})
    assert times(merged) == {"cpu-2c": {"throughput": [2.0], "step_time": [1.0]}}


@pytest.mark.parametrize("scope", ["machine", "samples"])
def test_times_that_were_not_properly_measured_stay_as_they_were(scope):
    old = merge(None, {"run": record(step_time=1.0, compile_time=9.0)}, STAMP, {"run": {"machine"}})
    new = record(step_time=5.0, compile_time=2.0)
    new.machines["cpu-2c"].metrics["step_time"] = []
    merged = merge(old, {"run": new}, STAMP, {"run": {scope}})
    assert times(merged)["cpu-2c"]["step_time"] == [1.0]
    assert times(merged)["cpu-2c"]["compile_time"] == ([2.0] if scope == "machine" else [9.0, 2.0])
    new.machines["cpu-2c"].metrics["compile_time"] = []
    assert merge(old, {"run": new}, STAMP, {"run": {scope}}) == old
    assert moved_scopes(old.runs["run"], new) == set()
    first = merge(None, {"run": new}, STAMP, {"run": {"machine"}})
    assert times(first) == {}


def test_samples_that_stay_keep_the_environment_they_were_taken_in():
    old = merge(None, {"run": record(step_time=1.0, compile_time=9.0, mindspore="2.9.0")}, STAMP, {"run": {"machine"}})
    new = record(step_time=5.0, compile_time=2.0)
    new.machines["cpu-2c"].metrics["step_time"] = []
    merged = merge(old, {"run": new}, STAMP, {"run": {"machine"}})
    assert merged.runs["run"].machines["cpu-2c"].environment.mindspore == "2.9.0"
