"""``harness profile`` as people type it."""

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.errors import ProfileError

OPERATORS = """op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent
Cast,40,2,0.2,0.05,0.1
MatMul,20,42,5.0,0.06,0.8
AllReduce,2,1,1.0,0.5,0.1
"""
STEPS = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"
    "1,800,150,50,200,50,0,100\n"
)


def run(*arguments):
    return CliRunner().invoke(app, ["profile", *map(str, arguments)], catch_exceptions=False)


def test_operators_by_time_by_calls_and_communication(tmp_path):
    (tmp_path / "cpu_op_type_info_0.csv").write_text(OPERATORS)
    lines = run(tmp_path, "--steps", 2, "--top", 1).output.splitlines()
    shown = [line.split()[0] for line in lines]
    assert shown == ["by", "operator", "MatMul", "by", "operator", "Cast", "communication", "operator", "AllReduce"]
    assert lines[2].split() == ["MatMul", "10", "2.500", "80.6%"]


def test_steps_where_there_are_some(tmp_path):
    (tmp_path / "op_statistic.csv").write_text("OP Type,Count,Total Time(us)\nMatMul,3,600\n")
    (tmp_path / "step_trace_time.csv").write_text(STEPS)
    text = run(tmp_path).output
    assert "step_time 0.001 s, exposed_communication 0.15, communication_share 0.2, bubble_ratio 0.1" in text
    assert "device_utilization 0.8" in text
    assert "0.80 ms" in text


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no op_statistic"),
        ({"run.json": "{"}, "is no run"),
        ({"step_trace_time.csv": STEPS[:-8]}, "cut off or damaged in line 2"),
    ],
)
def test_what_is_no_profile_is_refused(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ProfileError, match=message):
        run(tmp_path)


def test_no_folder_is_refused(tmp_path):
    with pytest.raises(ProfileError, match="is no folder"):
        run(tmp_path / "none")
