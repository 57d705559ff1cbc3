"""``--confirm-against`` with real repositories, worktrees and trainings."""

import shutil
import subprocess
import sys
import time

import pytest

from harness.gate import Status
from tests.plugin.sessions import results, run, suite

SPEED = """
from harness import Scenario, hardware

SCENARIO = Scenario(model="mine:build", steps=6, batch=4, sequence=32, eval_sequences=0)


@hardware("cpu")
def test_speed(trainer, gate):
    # Other tests run beside this one; the slower model takes several times as long.
    policy = {"machine": {"relative": 0.6, "shared": 1.0, "spread": 100.0}}
    gate.check(trainer.run(SCENARIO), only=["step_time"], policy=policy)
"""

MODEL = """
from dataclasses import replace

from harness.models import PRESETS
from harness.trainer.model import Decoder


def build(scenario):
    config = replace(PRESETS["nano"], width={width}, feed_forward=4 * {width})
    return Decoder(config, scenario.sequence, scenario.seed, scenario.precision)
"""


def git(project, *arguments):
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
    return subprocess.run(command, cwd=project.path, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(project):
    """A project whose commits are, in turn: fast (tag v1), broken (tag v2), fast; slower in the working tree."""
    suite(project, SPEED)
    (project.path / ".gitignore").write_text(".harness/\n__pycache__/\n")
    git(project, "init", "-q")
    for text, tag in ((MODEL.format(width=64), "v1"), ("this is no python", "v2"), (MODEL.format(width=64), "v3")):
        (project.path / "mine.py").write_text(text)
        git(project, "add", "-A")
        git(project, "commit", "-qm", tag)
        git(project, "tag", tag)
    (project.path / "mine.py").write_text(MODEL.format(width=512))
    return project


def verdict(project):
    (found,) = [verdict for _, verdict in results(project).verdicts]
    return found


def test_a_slower_working_tree_is_confirmed_against_a_commit(repository):
    """Nothing is approved on this machine, so the base alone can tell."""
    done = run(repository, "--confirm-against", "v1")
    assert done.ret == 1
    found = verdict(repository)
    assert found.status is Status.REGRESSED
    assert found.confirmation.status is Status.NO_BASELINE
    assert found.confirmation.against == "v1"
    assert found.confirmation.low > 1.6
    done.stdout.fnmatch_lines(["*REGRESSED*run.step_time: worse: head / v1 * over 12 pairs; at first NO_BASELINE*"])
    assert "worktrees" not in git(repository, "worktree", "list")
    assert "512" in (repository.path / "mine.py").read_text()


@pytest.mark.nightly
def test_an_unchanged_tree_is_cleared_also_against_another_interpreter(repository):
    git(repository, "checkout", "-q", "mine.py")
    done = run(repository, f"--confirm-against={sys.executable}")
    assert done.ret == 0, done.stdout.str()
    found = verdict(repository)
    assert found.status is Status.PASS
    assert found.reason.startswith("no worse: head / MindSpore 2.")
    assert sys.prefix not in found.model_dump_json()


def test_a_broken_base_leaves_head_judged(repository):
    done = run(repository, "--confirm-against", "v2")
    found = verdict(repository)
    assert found.status is Status.NO_BASELINE
    assert "not confirmed, because base failed: a rank failed" in found.reason
    assert found.confirmation.problem.startswith("base failed")
    assert done.ret == 0


def test_a_session_killed_in_the_middle_leaves_nothing_that_the_next_does_not_remove(repository):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--confirm-against=v1", "suites"]
    folder = repository.path / ".harness" / "worktrees"
    with subprocess.Popen(command, cwd=repository.path, stdout=subprocess.DEVNULL) as killed:
        end = time.monotonic() + 120
        while not list(folder.glob("*/base/mine.py")):
            assert killed.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        killed.kill()
    # The killed session had finished no test: it has no results, and no part of any.
    assert not list((repository.path / ".harness" / "runs").glob("*/results.json*"))
    assert "/base" in git(repository, "worktree", "list")
    run(repository, "--confirm-against=v1", "-k", "nothing")
    assert "/base" not in git(repository, "worktree", "list")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("nowhere", "no commit and no interpreter of that name; fetch it (git fetch), or name a branch"),
        ("--help", "no commit and no interpreter"),
        ("", "--confirm-against names nothing; give a branch"),
        ("{folder}/bare-python", "bare-python has no mindspore, numpy"),
        ("{folder}/broken-python", "broken-python has no exit 3"),
    ],
)
def test_a_base_that_is_none_is_refused_before_anything_is_trained(repository, against, message):
    bare = repository.path / "bare-python"
    bare.write_text('#!/bin/sh\necho "- mindspore numpy"\n')
    broken = repository.path / "broken-python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    for script in (bare, broken):
        script.chmod(0o755)
    done = run(repository, f"--confirm-against={against.format(folder=repository.path)}")
    assert done.ret == 4
    done.stderr.fnmatch_lines([f"*{message.replace('[', '[[]')}*"])


def test_without_a_repository_it_is_refused(repository):
    shutil.rmtree(repository.path / ".git")
    done = run(repository, "--confirm-against", "v1")
    assert done.ret == 4
    done.stderr.fnmatch_lines(["*the project needs a git commit*"])
