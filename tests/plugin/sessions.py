"""Pytest sessions of their own: a project with a suite, run, approved, read."""

import json
import subprocess
import sys
from pathlib import Path

from harness.results import read

ROOT = Path(__file__).parents[2]

GATED = """
import pytest
from harness import cards, hardware
from tests.gate.builders import make_run

@hardware("cpu")
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_gated(gate, name):
    curves = {"loss": [3.0, 2.5, {last}]}
    gate.check(make_run(peak_memory={memory}, throughput=1000.0, curves=curves))
"""

MARKED = """
from harness import cards, hardware

@hardware("cpu", "gpu", "ascend")
def test_runs(trainer):
    pass

@hardware("cpu", "ascend")
@cards(1000)
def test_is_large(trainer):
    pass
"""


def suite(project, text, name="test_suite.py"):
    path = project.path / "suites" / name
    path.write_text(text)
    return path


def gated(project, memory=100.0, last=2.0):
    return suite(project, GATED.replace("{memory}", str(memory)).replace("{last}", str(last)))


def run(project, *arguments):
    return project.runpytest_subprocess("-p", "no:cacheprovider", *arguments, "suites")


def run_here(project, *arguments):
    """As ``run``, in this process: for sessions that train nothing, and change nothing that outlives them."""
    return project.runpytest_inprocess("-p", "no:cacheprovider", *arguments, "suites")


def approve(project, *arguments):
    command = [
        sys.executable,
        "-m",
        "harness.cli",
        "baseline",
        "approve",
        "--reason",
        "first",
        "--by",
        "Ada",
        *arguments,
    ]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(project):
    return read(project.path / ".harness" / "latest")


def comparable(found):
    """Results without what differs between any two sessions."""
    content = json.loads(found.model_dump_json(exclude={"started"}))
    for test in content["tests"]:
        for attempt in test["attempts"]:
            attempt.pop("seconds")
    return content
