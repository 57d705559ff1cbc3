"""MindSpore's profiler over some steps."""

from pathlib import Path

import mindspore as ms
from mindspore.profiler import ProfilerActivity, profile, tensorboard_trace_handler
from mindspore.train import Callback, RunContext

from harness.metrics.speed import WARMUP_STEPS
from harness.profiling import Operator, read_operators


class StepProfiler(Callback):
    """Profiles the first steps after the warm-up. It begins and ends between steps."""

    def __init__(self, folder: Path, steps: int) -> None:
        """Prepares a profile.

        Args:
            folder: for what the profiler leaves.
            steps: that are profiled; 0 for none.
        """
        super().__init__()
        self.folder, self.steps = folder, steps
        self._profile: profile | None = None

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Begins after the warm-up, and ends after as many steps as were asked for."""
        step = run_context.original_args().cur_step_num
        if step == WARMUP_STEPS:
            device = {"Ascend": ProfilerActivity.NPU, "GPU": ProfilerActivity.GPU}.get(ms.get_context("device_target"))
            self._profile = profile(
                activities=[ProfilerActivity.CPU, *([device] if device else [])],
                on_trace_ready=tensorboard_trace_handler(str(self.folder)),
            )
            self._profile.start()
        elif self._profile and step == WARMUP_STEPS + self.steps:
            self._profile.stop()

    def operators(self) -> list[Operator]:
        """What a step called, slowest kind first; nothing where no step was profiled."""
        return read_operators(self.folder, self.steps) if self._profile else []
