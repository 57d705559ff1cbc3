"""Monitors hung into MindSpore's own ``Model.train``."""

import subprocess
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn
from mindspore.train import Model

from harness.alarms import Alarms
from harness.trainer.monitors import (
    AlarmMonitor,
    CurveMonitor,
    Every,
    HostMemoryMonitor,
    Monitors,
    ProgressMonitor,
    StepTimer,
)


def test_monitors_work_under_model_train(tmp_path):
    ms.set_seed(0)
    rows = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
    data = ds.NumpySlicesDataset((rows, rows.sum(1, keepdims=True)), ["x", "y"], shuffle=False).batch(4)
    network = nn.Dense(3, 1)
    model = Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.1))
    curves, timer = CurveMonitor(), StepTimer()
    evaluations = Every(3, lambda step: 7.0 * step)
    alarms = AlarmMonitor(Alarms(), lambda step: 0.1)
    progress = ProgressMonitor(tmp_path / "progress", seconds=0.0)
    model.train(2, data, callbacks=[curves, timer, evaluations, alarms, progress], dataset_sink_mode=False)
    assert list(curves.curves) == ["loss"]
    assert len(curves.curves["loss"]) == 12
    assert curves.curves["loss"][-1] < 0.1 * curves.curves["loss"][0]
    assert len(timer.step_seconds) == 12
    assert min(timer.step_seconds) > 0
    assert evaluations.results == [21.0, 42.0, 63.0, 84.0]
    assert not alarms.alarms.given
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


def test_alarms_see_what_our_loop_hands_over():
    alarms = AlarmMonitor(Alarms(), lambda step: 1e-3)
    monitors = Monitors([alarms], steps=1)
    monitors.begin_step(1)
    monitors.end_step((3.0, 1.0, 0.1, 2e-3))
    assert alarms.alarms.given == {"rate": "step 1: the learning rate left its schedule: 0.002 instead of 0.001"}


def test_alarms_do_without_an_update_norm():
    alarms = AlarmMonitor(Alarms(), lambda step: 1e-3, ("loss", "grad_norm", "learning_rate"))
    monitors = Monitors([alarms], steps=30)
    for step in range(1, 31):
        monitors.begin_step(step)
        monitors.end_step((3.0, 1.0 if step < 20 else 50.0, 1e-3))
    assert list(alarms.alarms.given) == ["norm"]


def test_host_memory_is_that_of_the_process_and_its_children():
    """A child that holds 64 MiB for a while, looked at every second step."""
    memory = HostMemoryMonitor(every=2)
    monitors = Monitors([memory], steps=6)
    code = "held = bytearray(b'x') * 2**26; print('ready', flush=True); input()"
    for step in range(1, 7):
        monitors.begin_step(step)
        if step == 3:
            child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            child.stdout.readline()
        monitors.end_step((1.0,))
        if step == 4:
            child.communicate(b"\n")
    assert len(memory.values) == 3
    assert memory.values[1] - memory.values[0] > 60
    assert memory.values[1] - memory.values[2] > 60
