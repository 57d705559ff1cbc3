"""Real trainings of two ranks of which one fails: each ends in time, says why, and leaves no process."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import Layout, Scenario
from harness.launch import train
from harness.launch.code import Code
from harness.launch.ports import FIRST, LAST
from harness.launch.supervise import RankFailure
from harness.results import read
from tests.processes import running_in

ROOT = Path(__file__).parents[2]

MODELS = """
import os, signal, time
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Model(nn.Cell):
    def __init__(self, happens, step):
        super().__init__()
        self.table = Parameter(Tensor(np.zeros((256, 256), np.float32)), name="table")
        self.happens, self.step, self.calls = happens, step, 0

    def construct(self, tokens):
        self.calls += 1
        if self.calls == self.step and os.environ.get("RANK_ID") == "1":
            self.happens()
        return ops.gather(self.table, tokens, 0)


def fails():
    raise ValueError("no such expert")


def sleeps():
    time.sleep(3600)


def well(scenario):
    return Model(None, 0)


def killed(scenario):
    return Model(lambda: os.kill(os.getpid(), signal.SIGKILL), 3)


def raising(scenario):
    return Model(fails, 3)


def hanging(scenario):
    return Model(sleeps, 3)


def dying_at_start(scenario):
    if os.environ["RANK_ID"] == "1":
        os._exit(7)
    return Model(None, 0)
"""

BASE = Scenario(
    model="models:well",
    data="markov",
    steps=5,
    batch=4,
    sequence=8,
    mode="pynative",
    eval_sequences=0,
    layout=Layout(dp=2),
)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path


def run(project, which, deadline=60.0):
    folder = project / "run"
    folder.mkdir()
    start = time.monotonic()
    try:
        with pytest.raises(RankFailure) as caught:
            train(BASE.replace(model=f"models:{which}"), "cpu", Code(project), folder, deadline)
    finally:
        assert running_in(folder) == []
    return str(caught.value), time.monotonic() - start


@pytest.mark.parametrize(
    ("which", "ended", "said"),
    [
        ("killed", "rank 1 was killed by SIGKILL", "last step seen:"),
        ("raising", "rank 1 exited with 1", "ValueError: no such expert"),
        ("dying_at_start", "rank 1 exited with 7", "no step was finished"),
    ],
)
def test_a_rank_that_fails_ends_the_run_and_is_named(project, which, ended, said):
    message, seconds = run(project, which)
    assert ended in message
    assert said in message
    assert seconds < 45


def test_ranks_that_wait_in_a_collective_for_ever_end_at_the_deadline(project):
    """The rank that sleeps shows where, in its log; the other waits in the reduction."""
    message, seconds = run(project, "hanging", deadline=25.0)
    assert "the deadline of 25 s passed: rank 0 was still running; rank 1 was still running" in message
    assert 25 <= seconds < 40
    assert "in sleeps" in (project / "run" / "rank-1.log").read_text()


def test_a_port_that_somebody_holds_is_not_taken(project):
    """A leftover of an earlier run listens on the very port that this run would try first."""
    (project / "run").mkdir()
    with socket.socket() as leftover:
        leftover.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        leftover.bind(("127.0.0.1", FIRST + os.getpid() * 7 % (LAST - FIRST)))
        leftover.listen()
        done = train(BASE, "cpu", Code(project), project / "run", 60.0)
    assert len(done.curve("loss")) == BASE.steps


SUITE = """
from harness import Layout, Scenario, cards, hardware

WELL = Scenario(
    model="models:well", data="markov", steps=3, batch=4, sequence=8, mode="pynative", eval_sequences=0
)


@hardware("cpu")
def test_well(trainer):
    assert len(trainer.run(WELL).curve("loss")) == 3


@hardware("cpu")
@cards(2)
def test_killed(trainer):
    trainer.run(WELL.replace(model="models:killed", layout=Layout(dp=2)))
"""


def test_results_of_other_tests_are_kept(project):
    (project / "test_suite.py").write_text(SUITE)
    (project / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment = {name: value for name, value in environment.items() if name not in ("CI", "PYTEST_XDIST_WORKER")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"rank 1 was killed by {signal.Signals(9).name}" in done.stdout
    results = read(project / ".harness" / "latest")
    outcomes = {test.nodeid: test.last.outcome for test in results.tests}
    assert outcomes == {"test_suite.py::test_well[cpu]": "passed", "test_suite.py::test_killed[cpu]": "failed"}
    assert len(results.runs) == 1
    assert running_in(project / ".harness") == []
