"""Real checkpoints, asked by a real process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from harness import Scenario
from harness.checkpoints.manifest import read as read_checkpoint
from harness.checkpoints.policy import Checkpoints
from harness.checkpoints.store import FOLDER, Store
from harness.cli import app
from harness.decoding import Decoding
from harness.errors import CheckpointError, HarnessError, ResultsError, TaskError
from harness.examination import Examination, complete, examine
from harness.launch import train
from harness.launch.code import Code
from harness.tasks.log import LOG, read

ROOT = Path(__file__).parents[1]
CODE = Code(ROOT)
TASKS = ROOT / "fixtures" / "tasks"
SCENARIO = Scenario(model="nano", steps=3, batch=4, sequence=64, eval_sequences=0, checkpoints=Checkpoints(every=3))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A checkpoint after three steps."""
    folder = tmp_path_factory.mktemp("run")
    train(SCENARIO, "cpu", CODE, folder, 120.0)
    return Store(folder / FOLDER).path(3)


@pytest.fixture
def folder(trained, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(trained, tmp_path / FOLDER / trained.name))


def task(tmp_path, kind, *samples, **header):
    path = tmp_path / f"{kind}.jsonl"
    lines = [{"schema": 1, "task": kind, "version": 1, "kind": kind, "language": "en", **header}, *samples]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def asked(*paths, **more):
    return Examination(tuple(paths), **more)


def test_every_kind_is_asked_once_and_settings_are_kept_apart(folder):
    paths = sorted(TASKS.glob("*.jsonl"))
    assert examine(folder, asked(*paths), CODE) == (30, 0)
    results = read(folder.parent / LOG).results
    assert len(results) == 30
    assert {r.kind for r in results if r.correct is None} == {"generation"}
    assert all(len(r.nll) >= 2 and min(r.nll) > 0 for r in results if r.kind == "choice")
    assert examine(folder, asked(*paths), CODE) == (0, 30)
    notices = TASKS / "notices.jsonl"
    assert examine(folder, asked(notices, shots=1), CODE) == (10, 0)
    assert examine(folder, asked(notices, decoding=Decoding(temperature=1.0)), CODE) == (10, 0)
    assert len(read(folder.parent / LOG).results) == 50


def test_a_killed_examination_goes_on_with_what_is_missing(folder, tmp_path):
    """Forty samples; killed when some are done; asked again, each has one result, and no first one was asked twice."""
    samples = [{"id": f"s{number}", "prompt": f"{number} and "} for number in range(40)]
    path = task(tmp_path, "generation", *samples, tokens=24)
    script = (
        "from pathlib import Path\n"
        "from harness.examination import Examination, examine\n"
        "from harness.launch.code import Code\n"
        f"examine(Path({str(folder)!r}), Examination((Path({str(path)!r}),)), Code(Path({str(ROOT)!r})))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    deadline = time.monotonic() + 120
    while len(read(folder.parent / LOG).results) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while True:
        before = (folder.parent / LOG).read_bytes()
        time.sleep(0.5)
        if before == (folder.parent / LOG).read_bytes():
            break
    done = len(read(folder.parent / LOG).results)
    assert 5 <= done < 40
    assert examine(folder, asked(path), CODE) == (40 - done, done)
    assert (folder.parent / LOG).read_bytes().startswith(before)
    assert sorted(r.sample for r in read(folder.parent / LOG).results) == sorted(s["id"] for s in samples)


def test_scores_do_not_depend_on_who_is_asked_beside(folder, tmp_path):
    """More endings than are scored at once, and each alone."""
    endings = [f" ending {number}" for number in range(11)]
    many = task(tmp_path, "choice", {"id": "a", "prompt": "the", "choices": endings, "answer": 0})
    examine(folder, asked(many), CODE)
    (together,) = read(folder.parent / LOG).results
    alone = task(
        tmp_path, "cloze", *[{"id": str(n), "prompt": "the", "answer": ending} for n, ending in enumerate(endings)]
    )
    examine(folder, asked(alone), CODE)
    assert [r.nll[0] for r in read(folder.parent / LOG).results[1:]] == pytest.approx(together.nll, rel=1e-5)


def test_a_prompt_that_is_too_long_is_refused_before_anything_is_asked(folder, tmp_path):
    good = {"id": "good", "prompt": "x", "answer": "y"}
    long = {"id": "long", "prompt": "x" * 64, "answer": "yy"}
    with pytest.raises(TaskError, match=r"sample 'long': 66 tokens with 0 shots, the context is 64; use fewer shots"):
        examine(folder, asked(task(tmp_path, "cloze", good, long)), CODE)
    assert read(folder.parent / LOG).results == []
    fits = {"id": "long", "prompt": "x" * 64, "answer": "y"}
    assert examine(folder, asked(task(tmp_path, "cloze", good, fits)), CODE) == (2, 0)


def test_more_shots_than_samples_are_refused_and_the_log_is_free_again(folder):
    with pytest.raises(TaskError, match="shots=6: task 'endings' has 6 samples; use fewer shots") as caught:
        examine(folder, asked(TASKS / "endings.jsonl", shots=6), CODE)
    assert examine(folder, asked(TASKS / "endings.jsonl"), CODE) == (6, 0)
    assert caught.value


def test_what_is_not_trained_is_kept_too(tmp_path):
    """A BatchNorm's running mean is a parameter that no gradient reaches."""
    scenario = SCENARIO.replace(model="fixtures.models:over_rows")
    train(scenario, "cpu", CODE, tmp_path / "run", 120.0)
    folder = Store(tmp_path / "run" / FOLDER).path(3)
    content = (folder / "rank-0.safetensors").read_bytes()
    assert b"moving_mean" in content
    assert b"moving_variance" in content
    assert examine(folder, asked(TASKS / "endings.jsonl"), CODE) == (6, 0)


def test_a_checkpoint_of_another_shape_is_refused(folder):
    manifest = read_checkpoint(folder)
    other = SCENARIO.replace(model="decoder:layers=2,width=64,heads=2,feed_forward=128").to_dict()
    manifest.model_copy(update={"scenario": other}).write(folder)
    with pytest.raises(HarnessError, match=r"is of another model: its 'blocks.0.feed_forward.gate.weight' has shape"):
        examine(folder, asked(TASKS / "endings.jsonl"), CODE)
    deeper = SCENARIO.replace(model="decoder:layers=3,width=64,heads=2,feed_forward=192").to_dict()
    manifest.model_copy(update={"scenario": deeper}).write(folder)
    with pytest.raises(HarnessError, match=r"is of another model: it has no 'blocks.2"):
        examine(folder, asked(TASKS / "endings.jsonl"), CODE)
    shallower = SCENARIO.replace(model="decoder:layers=1,width=64,heads=2,feed_forward=192").to_dict()
    manifest.model_copy(update={"scenario": shallower}).write(folder)
    with pytest.raises(HarnessError, match=r"is of another model: this one has no 'blocks.1"):
        examine(folder, asked(TASKS / "endings.jsonl"), CODE)


def test_a_second_examination_of_the_same_log_is_refused(folder):
    message = "is being written by another examination; wait for it"
    with FileLock(f"{(folder.parent / LOG).resolve()}.lock"), pytest.raises(ResultsError, match=message):
        examine(folder, asked(TASKS / "endings.jsonl"), CODE)


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(CheckpointError, match="No such file or directory; it is no complete checkpoint"):
        examine(tmp_path, asked(TASKS / "endings.jsonl"), CODE)
    with pytest.raises(TaskError, match=r"none\.jsonl can't be read"):
        examine(folder, asked(tmp_path / "none.jsonl"), CODE)


def test_checkpoints_are_asked_as_soon_as_they_are_complete(folder, tmp_path, monkeypatch):
    """What is still being written does not bear the name of a checkpoint."""
    monkeypatch.chdir(ROOT)
    part = tmp_path / "other" / FOLDER / "step-00000003.part"
    shutil.copytree(folder, part)
    command = ["eval", "watch", str(tmp_path), str(TASKS / "endings.jsonl"), "--once"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.output.count("6 samples asked") == 1
    whole = part.rename(part.with_suffix(""))
    assert complete(tmp_path, {folder}) == [whole]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "step-00000003: 0 samples asked, 6 had their results" in done.output
    assert "other/checkpoints/step-00000003: 6 samples asked, 0 had their results" in done.output
    (folder / "rank-0.safetensors").write_bytes(b"")
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 2
    assert "step-00000003: error: step-00000003: rank-0.safetensors has 0 bytes of" in done.output
    assert "other/checkpoints/step-00000003: 0 samples asked, 6 had their results" in done.output
    with pytest.raises(ResultsError, match="is no folder; name one below which runs leave their checkpoints"):
        complete(tmp_path / "none", set())


def test_checkpoints_are_asked_while_training_goes_on(tmp_path):
    """A watcher beside a training: each checkpoint is asked, the first before the training has ended."""
    scenario = SCENARIO.replace(steps=900, checkpoints=Checkpoints(every=300))
    command = [sys.executable, "-m", "harness.cli", "eval", "watch", str(tmp_path), str(TASKS / "endings.jsonl")]
    watcher = subprocess.Popen([*command, "--every", "0.1"], cwd=ROOT, start_new_session=True)
    log, seen = tmp_path / FOLDER / LOG, []

    def progress(step, loss):
        seen.append((step, {result.setting.step for result in read(log).results}))

    try:
        train(scenario, "cpu", CODE, tmp_path, 300.0, None, progress)
        deadline = time.monotonic() + 60
        while len(read(log).results) < 18 and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        os.killpg(watcher.pid, signal.SIGKILL)
        watcher.wait()
    assert {result.setting.step for result in read(log).results} == {300, 600, 900}
    assert any(300 in asked and step < 900 for step, asked in seen)


def test_the_command_asks_and_compares(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = str(TASKS / "endings.jsonl")
    done = CliRunner().invoke(app, ["eval", "run", str(folder), path, "--shots", "1"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "6 samples asked, 0 had their results" in done.output
    assert "endings v1, 1 shots, greedy" in done.output
    (folder.parent / LOG).write_bytes((folder.parent / LOG).read_bytes() + b'{"half')
    shown = CliRunner().invoke(app, ["eval", "table", str(folder)], catch_exceptions=False)
    assert "evaluations.jsonl: 1 lines are no results and were left out" in shown.output
    assert "accuracy" in shown.output
    with pytest.raises(ResultsError, match="holds no results; ask with `harness eval run`"):
        CliRunner().invoke(app, ["eval", "table", str(tmp_path)], catch_exceptions=False)
