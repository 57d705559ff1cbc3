"""Monitors hung into MindSpore's own ``Model.train``."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn
from mindspore.train import Model

from harness.trainer.monitors import CurveMonitor, Monitors, PerplexityMonitor, ProgressMonitor, StepTimer


def test_monitors_work_under_model_train(tmp_path):
    ms.set_seed(0)
    rows = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
    data = ds.NumpySlicesDataset((rows, rows.sum(1, keepdims=True)), ["x", "y"], shuffle=False).batch(4)
    network = nn.Dense(3, 1)
    model = Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.1))
    curves, timer = CurveMonitor(), StepTimer()
    evaluations = PerplexityMonitor(lambda: 7.0, every=3)
    progress = ProgressMonitor(tmp_path / "progress", seconds=0.0)
    model.train(2, data, callbacks=[curves, timer, evaluations, progress], dataset_sink_mode=False)
    assert list(curves.curves) == ["loss"]
    assert len(curves.curves["loss"]) == 12
    assert curves.curves["loss"][-1] < 0.1 * curves.curves["loss"][0]
    assert len(timer.step_seconds) == 12
    assert min(timer.step_seconds) > 0
    assert evaluations.curve == [7.0] * 4
    step, loss = (tmp_path / "progress").read_text().split()
    assert step == "12"
    assert float(loss) == pytest.approx(curves.curves["loss"][-1], rel=1e-4)


def test_our_loop_hands_over_every_output():
    curves = CurveMonitor()
    monitors = Monitors([curves], steps=2)
    for step in (1, 2):
        monitors.begin_step(step)
        monitors.end_step((3.0 / step, 1.0, 0.1, 1e-3))
    assert curves.curves == {
        "loss": [3.0, 1.5],
        "grad_norm": [1.0] * 2,
        "update_norm": [0.1] * 2,
        "learning_rate": [1e-3] * 2,
    }
