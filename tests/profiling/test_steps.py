"""Ascend's account of each step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ProfileError, Undefined
from harness.profiling import StepTrace, read_steps, shares

HEADER = (
    "Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
SINGLE = (
    f"Step,{HEADER}\n"
    "1,800000,150000,50000,200000,50000,0,100000,50000,0\n"
    "2,820000,130000,50000,180000,50000,0,100000,30000,0\n"
)
CLUSTER = (
    f"Step,Type,Index,{HEADER}\n"
    "1,rank,0,800000,100000,0,100000,100000,0,0,0,0\n"
    "1,rank,1,700000,200000,0,200000,100000,0,50000,0,0\n"
    '1,stage,"(0, 1)",800000,200000,0,200000,100000,0,50000,0,0\n'
)


def test_one_rank_in_seconds(tmp_path):
    (tmp_path / "step_trace_time.csv").write_text(SINGLE)
    first, _ = read_steps(tmp_path)
    assert (first.computing, first.exposed, first.free, first.bubble) == pytest.approx((0.8, 0.15, 0.05, 0.1))
    assert first.length == pytest.approx(1.0)
    found = shares(read_steps(tmp_path))
    expected = {"step_time": 1.0, "exposed_communication": 0.14, "bubble_ratio": 0.1}
    assert found == pytest.approx({**expected, "communication_share": 0.19, "device_utilization": 0.81})


def test_of_a_cluster_the_rank_that_waits_most_counts_and_stages_do_not(tmp_path):
    (tmp_path / "step_trace_time.csv").write_text(SINGLE)
    (tmp_path / "cluster_step_trace_time.csv").write_text(CLUSTER)
    steps = read_steps(tmp_path)
    assert [step.rank for step in steps] == ["0", "1"]
    expected = {"step_time": 1.0, "exposed_communication": 0.2, "bubble_ratio": 0.05}
    assert shares(steps) == pytest.approx({**expected, "communication_share": 0.2, "device_utilization": 0.7})


seconds = st.floats(0.001, 10)


@given(st.lists(st.tuples(seconds, seconds, seconds, seconds), min_size=1, max_size=8), st.floats(0.1, 10))
def test_shares_have_no_unit(rows, factor):
    def traces(scale):
        return [
            StepTrace(str(i), "0", c * scale, e * scale, e * scale, 0.0, f * scale, min(b, f) * scale)
            for i, (c, e, f, b) in enumerate(rows)
        ]

    plain, scaled = shares(traces(1.0)), shares(traces(factor))
    assert scaled["exposed_communication"] == pytest.approx(plain["exposed_communication"])
    assert scaled["step_time"] == pytest.approx(factor * plain["step_time"])
    assert 0 < plain["exposed_communication"] < 1


def test_steps_of_no_length_say_nothing():
    with pytest.raises(Undefined, match="no step that took any time"):
        shares([StepTrace("1", "", 0, 0, 0, 0, 0, 0)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SINGLE.replace("Free", "Fre"), "lacks the column 'Free'"),
        (SINGLE[:-40], "cut off or damaged in line 3"),
        (SINGLE.replace("820000", "?"), r"Computing is '\?', which is no number"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, text, message):
    (tmp_path / "step_trace_time.csv").write_text(text)
    with pytest.raises(ProfileError, match=message):
        read_steps(tmp_path)


def test_hardware_that_reports_no_steps_has_none(tmp_path):
    assert read_steps(tmp_path) == []
