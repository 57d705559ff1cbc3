"""What MindSpore's own writers of Ascend's profiles write, our readers read; the figures in them are made up."""

from types import SimpleNamespace

import numpy as np
import pytest
from mindspore.profiler.analysis.viewer.ascend_kernel_details_viewer import AscendKernelDetailsViewer
from mindspore.profiler.analysis.viewer.ascend_step_trace_time_viewer import AscendStepTraceTimeViewer
from mindspore.profiler.common.constant import OpSummaryHeaders, ProfilerActivity, ProfilerLevel

from harness.profiling import read_operators, read_steps


def viewer(kind, folder, **more):
    return kind(
        ascend_profiler_output_path=str(folder),
        ascend_ms_dir=str(folder),
        profiler_level=ProfilerLevel.Level0.value,
        activities=[ProfilerActivity.NPU.value],
        **more,
    )


def test_kernel_details(tmp_path):
    headers = [header.value for header in OpSummaryHeaders]
    kinds = {OpSummaryHeaders.TASK_START_TIME.value: "U32", OpSummaryHeaders.TASK_DURATION.value: float}
    summary = np.zeros(3, dtype=[(header, kinds.get(header, "U32")) for header in headers])
    summary[OpSummaryHeaders.OP_TYPE.value] = ["MatMulV2", "Cast", "MatMulV2"]
    summary[OpSummaryHeaders.TASK_START_TIME.value] = ["1.5\t", "2.5\t", "9.5\t"]
    summary[OpSummaryHeaders.TASK_DURATION.value] = [100.0, 20.0, 300.0]
    container = SimpleNamespace(hardware_op_event={}, get_step_id_time_dict=dict)
    written = viewer(AscendKernelDetailsViewer, tmp_path, is_set_schedule=False, jit_level="O0")
    written.save({"trace_view_container": container, "op_summary": summary, "op_summary_headers": headers})
    found = read_operators(tmp_path, steps=2)
    assert [(operator.kind, operator.calls) for operator in found] == [("MatMulV2", 1.0), ("Cast", 0.5)]
    assert found[0].seconds == pytest.approx(200e-6)


def test_step_trace_time(tmp_path):
    written = viewer(AscendStepTraceTimeViewer, tmp_path)
    times = {"Computing": 800.0, "Communication(Not Overlapped)": 150.0, "Overlapped": 50.0, "Communication": 200.0}
    written.step_trace_time_data_list = [{"Step": 3, **times, "Free": 50.0, "Stage": 900.0, "Bubble": 100.0}]
    written._write_data()
    (step,) = read_steps(tmp_path)
    assert (step.step, step.rank) == ("3", "")
    parts = (step.computing, step.exposed, step.overlapped, step.communication, step.free, step.bubble)
    assert parts == pytest.approx((800e-6, 150e-6, 50e-6, 200e-6, 50e-6, 100e-6))
