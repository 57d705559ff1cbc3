import pytest

from harness import Checkpoints, Layout
from harness.checkpoints.resume import check_data, check_resume
from harness.checkpoints.store import Store
from harness.errors import CheckpointError
from tests.checkpoints.making import SCENARIO, save


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("run") / "checkpoints")
    with store.owned():
        return save(store, 10)


def resume(manifest, scenario, data="text-0", windows=50):
    check_resume(manifest, scenario)
    check_data(manifest, scenario, data, windows)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"batch": 32},
        {"layout": Layout(dp=2)},
        {"mode": "pynative"},
        {"accumulation": 2},
        {"data_workers": 4},
        {"eval_every": 5},
        {"samples": 3},
        {"recompute": "full"},
        {"checkpoints": Checkpoints(every=7)},
    ],
)
def test_how_it_is_run_and_looked_at_may_change(manifest, change):
    resume(manifest, SCENARIO.replace(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "nano"},
        {"learning_rate": 1e-2},
        {"schedule": "constant"},
        {"optimizer": "sgd"},
        {"sequence": 64},
        {"precision": "float16"},
        {"seed": 1},
        {"weight_decay": 0.0},
        {"clip_norm": None},
        {"masking": 0.1},
        {"warmup_steps": 3},
        {"data": "markov"},
    ],
)
def test_what_is_learned_may_not(manifest, change):
    (name,) = change
    with pytest.raises(CheckpointError, match=rf"the checkpoint of step 10 is of another scenario \({name}: "):
        resume(manifest, SCENARIO.replace(**change))


def test_more_steps_would_bend_the_schedule(manifest):
    with pytest.raises(CheckpointError, match=r"steps=200 and the checkpoint of step 10 disagree: .* would jump"):
        resume(manifest, SCENARIO.replace(steps=200))
    constant = SCENARIO.replace(schedule="constant")
    resume(manifest.model_copy(update={"scenario": constant.to_dict()}), constant.replace(steps=200))


def test_a_finished_training_may_still_report_and_none_goes_back(manifest):
    resume(manifest.model_copy(update={"step": 100}), SCENARIO)
    with pytest.raises(CheckpointError, match="the checkpoint of step 101 is past steps=100; use more steps"):
        resume(manifest.model_copy(update={"step": 101}), SCENARIO)


@pytest.mark.parametrize(("data", "windows"), [("text-1", 50), ("text-0", 51)])
def test_the_data_must_be_the_same(manifest, data, windows):
    with pytest.raises(CheckpointError, match=r"is not what the checkpoint of step 10 was trained on: text-0 with 50"):
        resume(manifest, SCENARIO, data, windows)


def test_a_scenario_that_is_unknown_here_is_told(manifest):
    changed = manifest.model_copy(update={"scenario": {**SCENARIO.to_dict(), "experts": 8}})
    with pytest.raises(CheckpointError, match="a scenario that this harness can't read: a scenario has no field 'exp"):
        resume(changed, SCENARIO)
