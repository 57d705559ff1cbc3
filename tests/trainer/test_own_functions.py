"""Functions of the user's, in real trainings."""

import pytest

from harness import Checkpoints, Layout, Scenario
from harness.errors import LaunchError, ScenarioError
from harness.launch import train
from harness.launch.code import Code

OURS = """
import numpy as np

def data(scenario):
    rows = np.arange(40)[:, None] + np.arange(scenario.sequence + 1)
    return rows[:32] % 50, rows[32:] % 50

def step(model, scenario):
    def train(windows, rate, number):
        return 1.0 / number, rate
    return train

def bad_step(model, scenario):
    return lambda windows, rate, number: 1.0

def no_step(model, scenario):
    return 3
"""
SCENARIO = Scenario(
    model="nano",
    data="ours:data",
    steps=4,
    batch=8,
    sequence=16,
    eval_sequences=8,
    mode="pynative",
    schedule="constant",
)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "ours.py").write_text(OURS)
    return tmp_path


def run(project, scenario, **options):
    return train(scenario, "cpu", Code(project), project / "run", 120.0, **options)


def test_data_of_a_function_is_trained_on_and_remembered(project):
    found = run(project, SCENARIO)
    assert found.environment.data.startswith("function-")
    assert found.curve("tokens_seen") == (128.0, 256.0, 384.0, 512.0)
    assert found["validation_perplexity"] > 1


def test_a_resumed_training_must_see_the_same_data(project):
    saving = SCENARIO.replace(checkpoints=Checkpoints(every=2))
    run(project, saving, until=2)
    checkpoints = project / "run" / "checkpoints"
    assert run(project, saving, resume=checkpoints).resumed_from == 2
    (project / "ours.py").write_text(OURS.replace("% 50", "% 49"))
    with pytest.raises(LaunchError, match=r"data='ours:data' is not what the checkpoint of step \d was trained on"):
        run(project, saving, resume=checkpoints)


def test_a_step_of_ones_own_gives_the_curves(project):
    found = run(project, SCENARIO.replace(step="ours:step", learning_rate=0.25))
    assert found.curve("loss") == (1.0, 0.5, pytest.approx(1 / 3), 0.25)
    assert found.curve("grad_norm") == (0.25,) * 4
    assert found.curve("tokens_seen")[-1] == 512.0
    assert "update_norm" not in found.curves
    assert "optimizer_memory" not in found.metrics


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": "ours:bad_step"}, "step='ours:bad_step' returned float; return the loss and the gradient norm"),
        ({"step": "ours:no_step"}, "step='ours:no_step' made a int; return a function"),
        ({"data": "ours:nothing"}, "data='ours:nothing' can't be loaded"),
    ],
)
def test_what_a_function_does_wrong_is_told(project, change, message):
    with pytest.raises(LaunchError, match=message):
        run(project, SCENARIO.replace(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"layout": Layout(tp=2)},
        {"layout": Layout(pp=2)},
        {"layout": Layout(dp=2, optimizer_sharding=True)},
        {"checkpoints": Checkpoints(every=2)},
        {"trace_every": 1},
    ],
)
def test_what_a_step_of_ones_own_can_not_do_is_refused(change):
    with pytest.raises(ScenarioError, match="and step='ours:step' disagree: only this trainer's own step can do that"):
        SCENARIO.replace(step="ours:step", **change)


def test_a_step_that_is_no_function_is_refused():
    with pytest.raises(ScenarioError, match=r"step='mine' is no 'package\.module:function'"):
        Scenario(step="mine")
