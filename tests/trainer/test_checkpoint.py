"""Real trainings that can't save, or can't go on."""

import shutil
from pathlib import Path

import pytest

from harness import Checkpoints, Guard, Scenario
from harness.checkpoints.store import FOLDER, Store
from harness.errors import CheckpointError, LaunchError, ScenarioError
from harness.faults import Fault
from harness.launch import train
from harness.launch.code import Code
from harness.measure import measure
from tests.checkpoints.making import file_system

ROOT = Path(__file__).parents[2]
CODE = Code(ROOT)
SCENARIO = Scenario(
    model="nano", steps=6, batch=4, sequence=32, eval_sequences=0, checkpoints=Checkpoints(every=2, kept=2)
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A training that was stopped after four of six updates, and its folder."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    return train(SCENARIO, "cpu", CODE, folder, 120.0, until=4), folder


def test_a_run_that_was_stopped_ends_with_a_checkpoint(run):
    stopped, folder = run
    assert len(stopped.curve("loss")) == 4
    assert Store(folder / FOLDER).newest()[0].step == 4
    assert stopped["checkpoint_time"] > 0


def test_a_full_disk_ends_the_training_with_a_reason_and_leaves_a_checkpoint(tmp_path):
    """A real file system, in which the second checkpoint does not fit beside the first."""
    small = tmp_path / "small"
    with file_system(small, "size=2m"):
        with pytest.raises(LaunchError) as caught:
            train(SCENARIO, "cpu", CODE, small / "run", 120.0)
        assert "error: the checkpoint of step 4 can't be written: " in str(caught.value)
        assert "the newest complete one is of step 2; free the disk and resume" in str(caught.value)
        assert Store(small / "run" / FOLDER).newest()[0].step == 2
        resumed = train(SCENARIO, "cpu", CODE, tmp_path / "resumed", 120.0, resume=small / "run" / FOLDER)
        assert resumed.resumed_from == 2


def test_two_trainings_never_save_into_one_folder(tmp_path):
    (tmp_path / FOLDER).mkdir(parents=True)
    with Store(tmp_path / FOLDER).owned(), pytest.raises(LaunchError, match="another training saves into this folder"):
        train(SCENARIO, "cpu", CODE, tmp_path, 120.0)


def test_the_best_stays_and_each_is_evaluated(tmp_path):
    """A rate so high that perplexity soon rises: the best is an early one, which the newest would have pushed out."""
    scenario = SCENARIO.replace(
        steps=10, learning_rate=3.0, schedule="constant", optimizer="sgd", clip_norm=None, eval_sequences=16
    )
    run = train(
        scenario.replace(checkpoints=Checkpoints(every=1, kept=1, best="perplexity")), "cpu", CODE, tmp_path, 120.0
    )
    perplexities = run.curve("checkpoint_perplexity_curve")
    assert len(perplexities) == 10
    best = 1 + perplexities.index(min(perplexities))
    assert best < 10
    store = Store(tmp_path / FOLDER)
    assert store.steps() == sorted({best, 10})
    assert store.read(best).evaluation.perplexity == min(perplexities)
    assert perplexities[-1] == run["validation_perplexity"]


def test_what_is_damaged_is_told_and_gone_around(run, tmp_path):
    """The newest is cut; training goes on from the one before, says so, and puts a whole one in its place."""
    stopped, folder = run
    shutil.copytree(folder / FOLDER, tmp_path / FOLDER)
    newest = Store(tmp_path / FOLDER).path(4)
    (newest / "rank-0.safetensors").write_bytes(b"")
    resumed = train(SCENARIO, "cpu", CODE, tmp_path, 120.0, resume=tmp_path / FOLDER)
    assert resumed.resumed_from == 2
    assert resumed.curve("loss")[:4] == stopped.curve("loss")
    (warning,) = resumed.warnings
    assert warning.startswith("step-00000004: rank-0.safetensors has 0 bytes of ")
    assert warning.endswith("; went on from step 2")
    assert Store(tmp_path / FOLDER).newest()[0].step == 6
    assert Store(tmp_path / FOLDER).read(4).step == 4


def test_what_cannot_be_gone_on_from_is_refused_before_anything_starts(run, tmp_path):
    _, folder = run
    place = tmp_path / "new"
    with pytest.raises(CheckpointError, match=r"is of another scenario \(model: 'nano' → 'tiny'\); begin anew"):
        train(SCENARIO.replace(model="tiny"), "cpu", CODE, place, 120.0, resume=folder / FOLDER)
    with pytest.raises(ScenarioError, match="until=3 and the checkpoint of step 4 disagree"):
        train(SCENARIO, "cpu", CODE, place, 120.0, resume=folder / FOLDER, until=3)
    with pytest.raises(ScenarioError, match="until=7 and steps=6 disagree"):
        train(SCENARIO, "cpu", CODE, place, 120.0, until=7)
    with pytest.raises(CheckpointError, match="no whole checkpoint in 'none': it holds none"):
        train(SCENARIO, "cpu", CODE, place, 120.0, resume=tmp_path / "none")
    assert not place.exists()


def test_a_runs_own_folder_is_not_removed_to_make_room_for_it(run):
    _, folder = run
    with pytest.raises(CheckpointError, match="checkpoints lies in the folder of the run that would go on from it"):
        measure(SCENARIO, "cpu", CODE, folder, resume=folder / FOLDER)
    assert Store(folder / FOLDER).newest()[0].step == 4


def test_a_model_whose_code_changed_is_refused_by_the_parameter(run, tmp_path):
    """The scenario is the same; a matrix has another shape."""
    (tmp_path / "own.py").write_text(
        "from fixtures.models import Normalized\n"
        "from mindspore import nn\n"
        "import os\n"
        "def model(scenario):\n"
        "    return Normalized(nn.LayerNorm([64]), scenario.seed)\n"
    )
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    code = Code(tmp_path)
    scenario = SCENARIO.replace(model="own:model")
    train(scenario, "cpu", code, tmp_path / "run", 120.0, until=2)
    models = tmp_path / "fixtures" / "models.py"
    models.write_text(models.read_text().replace("(0, 0.1, (WIDTH, 256))", "(0, 0.1, (WIDTH, 300))"))
    with pytest.raises(LaunchError, match=r"its 'head' has shape \(64, 256\), not \(64, 300\)"):
        train(scenario, "cpu", code, tmp_path / "again", 120.0, resume=tmp_path / "run" / FOLDER)


@pytest.mark.parametrize("kind", ["safetensors", "ckpt"])
def test_hidden_random_state_is_told_and_a_scalar_comes_back(tmp_path, kind):
    """What MindSpore's own dropout draws from can't be saved on CPU, and is told. A parameter may have no axis."""
    (tmp_path / "own.py").write_text(
        "from mindspore import Parameter, Tensor, nn\n"
        "from fixtures.models import Normalized\n"
        "class Scaled(nn.Cell):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.scale = Parameter(Tensor(1.5), name='scale')\n"
        "        self.dropout = nn.Dropout(p=0.1)\n"
        "    def construct(self, x):\n"
        "        return self.dropout(x) * self.scale\n"
        "def model(scenario):\n"
        "    return Normalized(Scaled(), scenario.seed)\n"
    )
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    scenario = SCENARIO.replace(model="own:model", checkpoints=Checkpoints(every=2, format=kind))
    run = train(scenario, "cpu", Code(tmp_path), tmp_path / "run", 120.0, until=2)
    assert any("MindSpore keeps what they draw from in its kernels" in warning for warning in run.warnings)
    resumed = train(scenario, "cpu", Code(tmp_path), tmp_path / "on", 120.0, until=4, resume=tmp_path / "run" / FOLDER)
    assert resumed.resumed_from == 2
    assert 1.4 < resumed.weights["norm.scale"].norm < 1.6


def test_a_run_may_go_on_in_its_own_folder_and_takes_nothing_old_for_new(run, tmp_path):
    """Reports, exit statuses and logs of the one that stopped lie there."""
    stopped, folder = run
    shutil.copytree(folder, tmp_path / "run")
    (tmp_path / "run" / "trace-0.jsonl").write_text("old\n")
    resumed = train(SCENARIO, "cpu", CODE, tmp_path / "run", 120.0, resume=tmp_path / "run" / FOLDER)
    assert (resumed.resumed_from, len(resumed.curve("loss"))) == (4, 6)
    assert resumed.curve("loss")[:4] == stopped.curve("loss")
    assert not (tmp_path / "run" / "trace-0.jsonl").exists()
    again = train(SCENARIO, "cpu", CODE, tmp_path / "run", 120.0, resume=tmp_path / "run" / FOLDER)
    assert (again.resumed_from, again.curves, again.weights) == (6, resumed.curves, resumed.weights)


def test_death_by_the_clock_leaves_something_to_go_on_from(tmp_path):
    scenario = SCENARIO.replace(steps=400, checkpoints=Checkpoints(every=1, kept=2))
    with pytest.raises(LaunchError, match="was killed by SIGKILL"):
        train(scenario, "cpu", CODE, tmp_path, 120.0, Fault("kill_after", 1.0))
    manifest, problems = Store(tmp_path / FOLDER).newest()
    assert manifest.step > 1
    assert problems == []


def test_one_process_under_a_guard_sends_nothing(tmp_path):
    run = train(SCENARIO.replace(guard=Guard("skip"), checkpoints=Checkpoints()), "cpu", CODE, tmp_path, 120.0)
    assert "communication_calls" not in run.metrics
    assert run["skipped_updates"] == 0
