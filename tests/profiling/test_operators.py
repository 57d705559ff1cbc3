"""Operators of a step, from what profilers leave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ProfileError
from harness.profiling import Operator, read_operators
from harness.profiling.operators import communicates

CPU = """op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent
Cast,4,2,0.2,0.05,0.1
MatMul,84,42,5.0,0.06,0.8
AllReduce,2,1,1.0,0.5,0.1
"""
ASCEND = """Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)
0,MatMulV2,AI_CORE,40,8000,100,200,300,80
0,Cast,AI_VECTOR_CORE,20,100,1,5,9,10
0,Cast,AI_CPU,4,900,200,225,250,10
"""


def folder(tmp_path, **files):
    below = tmp_path / "profile" / "FRAMEWORK"
    below.mkdir(parents=True)
    for name, text in files.items():
        (below / f"{name}.csv").write_text(text)
    return tmp_path / "profile"


def test_cpu_tells_milliseconds_of_all_steps(tmp_path):
    found = read_operators(folder(tmp_path, cpu_op_type_info_0=CPU), steps=2)
    assert [operator.kind for operator in found] == ["MatMul", "AllReduce", "Cast"]
    assert found[0].calls == 42
    assert found[0].seconds == pytest.approx(2.5e-3)


def test_ascend_tells_microseconds_and_sorts_of_cores(tmp_path):
    found = read_operators(folder(tmp_path, op_statistic_0=ASCEND), steps=4)
    assert found[0] == Operator("MatMulV2", 10, pytest.approx(2e-3))
    assert found[1] == Operator("Cast", 6, pytest.approx(2.5e-4))


KERNELS = """Task ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)
1,a,MatMulV2,AI_CORE,1.5\t,100,0
2,b,Cast,AI_VECTOR_CORE,2.5\t,20,1
3,c,MatMulV2,AI_CORE,9.5\t,300,1
"""


def test_calls_one_by_one_add_up(tmp_path):
    found = read_operators(folder(tmp_path, kernel_details=KERNELS), steps=2)
    assert found == [("MatMulV2", 1.0, pytest.approx(200e-6)), ("Cast", 0.5, pytest.approx(10e-6))]


def test_marked_steps_are_counted(tmp_path):
    lines = KERNELS.splitlines()
    marked = [f"Step ID,{lines[0]}", *(f"{step},{line}" for step, line in zip("445", lines[1:], strict=True))]
    assert read_operators(folder(tmp_path, kernel_details="\n".join(marked)), steps=9)[0].calls == 1.0


def test_sums_are_preferred_to_single_calls(tmp_path):
    assert read_operators(folder(tmp_path, kernel_details=KERNELS, op_statistic_0=ASCEND), steps=4)[0].calls == 10


@given(st.integers(1, 50))
def test_calls_of_a_step_do_not_depend_on_how_many_were_profiled(tmp_path_factory, steps):
    text = CPU.splitlines()[0] + f"\nCast,{3 * steps},3,{0.5 * steps},1,1\n"
    (found,) = read_operators(folder(tmp_path_factory.mktemp("p"), cpu_op_type_info_0=text), steps)
    assert found == ("Cast", pytest.approx(3), pytest.approx(5e-4))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "profile holds no op_statistic"),
        ({"cpu_op_type_info_0": "a,b\n1,2\n"}, "lacks the column 'op_type': no profiler of MindSpore wrote it"),
        ({"cpu_op_type_info_0": ""}, "lacks the column 'op_type'"),
        ({"cpu_op_type_info_0": CPU[: CPU.index("84") + 1]}, "cut off or damaged in line 3"),
        ({"cpu_op_type_info_0": CPU.replace("84", "x")}, "type_occurrences is 'x', which is no number"),
        ({"kernel_details": KERNELS.replace("Type", "Kind")}, "lacks the column 'Type'"),
        ({"kernel_details": KERNELS.replace(",20,1", ",x,1")}, "is 'x', which is no number"),
        ({"op_statistic": ASCEND.replace("20,100", "20,1,00")}, "cut off or damaged in line 3"),
    ],
)
def test_what_is_no_profile_is_refused(tmp_path, files, message):
    with pytest.raises(ProfileError, match=message):
        read_operators(folder(tmp_path, **files), steps=1)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    place = folder(tmp_path)
    (place / "op_statistic.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProfileError, match=r"op_statistic\.csv can't be read"):
        read_operators(place, steps=1)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("AllReduce", True), ("hcom_allReduce_", True), ("Send", True), ("MatMul", False), ("BroadcastTo", False)],
)
def test_what_communicates(kind, expected):
    assert communicates(Operator(kind, 1, 1)) is expected
