"""The examples of the documentation, as somebody would who copied them."""

import shutil

import pytest

from tests.processes import ROOT, module

EXAMPLES = ROOT / "docs" / "examples"


@pytest.mark.nightly
def test_a_model_of_ones_own(tmp_path):
    project = shutil.copytree(EXAMPLES / "own_model", tmp_path / "project")

    def run(*command):
        return module(project, *command)

    first = run("pytest", "-q", "-m", "cpu")
    assert "1 failed, 2 passed" in first.stdout, first.stdout + first.stderr
    assert "NO_BASELINE" in first.stdout
    approved = run("harness.cli", "baseline", "approve", "--reason", "first values", "--by", "them")
    assert approved.returncode == 0, approved.stderr
    second = run("pytest", "-q", "-m", "cpu")
    assert second.returncode == 0, second.stdout
    planted = run("pytest", "-q", "-m", "cpu", "-k", "learns", "--plant", "learning_rate=1.5")
    assert "REGRESSED" in planted.stdout


def test_a_trainer_of_ones_own(tmp_path):
    project = shutil.copytree(EXAMPLES / "own_trainer", tmp_path / "project")
    first = module(project, "pytest", "-q", "-m", "cpu")
    assert "1 failed, 1 passed" in first.stdout, first.stdout + first.stderr
    assert "NO_BASELINE" in first.stdout
    module(project, "harness.cli", "baseline", "approve", "--reason", "first values", "--by", "them")
    script = project / "train.py"
    script.write_text(script.read_text().replace("default=5.0", "default=5.5"))
    second = module(project, "pytest", "-q", "-m", "cpu", "-k", "learns")
    assert "REGRESSED" in second.stdout, second.stdout


@pytest.mark.nightly
def test_data_and_a_step_of_ones_own(tmp_path):
    project = shutil.copytree(EXAMPLES / "own_step", tmp_path / "project")
    first = module(project, "pytest", "-q", "-m", "cpu")
    assert "1 failed, 1 passed" in first.stdout, first.stdout + first.stderr
    module(project, "harness.cli", "baseline", "approve", "--reason", "first values", "--by", "them")
    assert module(project, "pytest", "-q", "-m", "cpu", "-k", "learns").returncode == 0
    planted = module(project, "pytest", "-q", "-m", "cpu", "-k", "learns", "--plant", "learning_rate=1.5")
    assert "REGRESSED" in planted.stdout
