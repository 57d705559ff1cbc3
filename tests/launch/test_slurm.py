"""Ranks under a real Slurm of one node."""

import os
import re
import subprocess
import sys
import threading
import time

import pytest

from harness import Layout, Scenario
from harness.errors import HardwareError, LaunchError
from harness.faults import Fault
from harness.launch import slurm, train
from harness.launch.code import Code
from harness.launch.placement import Placement
from tests.processes import ROOT, module

SMALL = Scenario(model="nano", steps=4, batch=4, sequence=16, eval_sequences=8)
TWO = SMALL.replace(layout=Layout(dp=2))
ON_SLURM = Placement(launcher="slurm", ranks_per_node=2)


def run(tmp_path, scenario=SMALL, deadline=120.0, placement=ON_SLURM, **options):
    return train(scenario, "cpu", Code(tmp_path), tmp_path / "run", deadline, placement=placement, **options)


def queued():
    """Jobs that wait, run, or are about to end."""
    return subprocess.run(["squeue", "-h", "-o", "%j %T"], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )


def test_two_ranks_train_what_they_do_here(cluster, tmp_path):
    here = train(TWO, "cpu", Code(tmp_path), tmp_path / "here", 120.0)
    there = run(tmp_path, TWO)
    assert there.curves == here.curves
    assert (there.machine, there.environment) == (here.machine, here.environment)
    assert (tmp_path / "run" / "rank-1.log").exists()


def test_a_rank_that_dies_is_told_with_its_node_and_its_last_lines(cluster, tmp_path):
    with pytest.raises(LaunchError) as failure:
        run(tmp_path, TWO, fault=Fault("kill_step", 2.0))
    assert "rank 1 was killed by SIGKILL" in str(failure.value)
    assert re.search(r"node 0 exited with [1-9]", str(failure.value))
    assert gone()


def test_the_deadline_cancels_the_job(cluster, tmp_path):
    long = SMALL.replace(steps=100_000, data="markov", sequence=2, batch=1, eval_sequences=0)
    with pytest.raises(LaunchError, match="the deadline of 8 s passed: rank 0 was still running"):
        run(tmp_path, long, deadline=8.0)
    assert gone()


@pytest.fixture
def busy(cluster, request):
    """A cluster that somebody else has for some seconds."""
    seconds = getattr(request, "param", 60)
    asked = ["srun", "--ntasks=1", "--exclusive", "sleep", str(seconds)]
    somebody = subprocess.Popen(asked, stderr=subprocess.DEVNULL)
    until("RUNNING")
    yield
    somebody.terminate()
    somebody.wait()


def until(state):
    """Waits for a job in a state."""
    end = time.monotonic() + 60
    while not any(state in line for line in queued()):
        assert time.monotonic() < end, f"no job is {state}"
        time.sleep(0.1)


@pytest.mark.parametrize("busy", [10], indirect=True)
def test_the_clock_stands_still_while_a_job_is_queued(busy, tmp_path):
    begin = time.monotonic()
    assert len(run(tmp_path, deadline=9.5).curve("loss")) == 4
    assert time.monotonic() - begin > 9.5


def test_a_job_that_is_abandoned_in_the_queue_is_cancelled(busy, tmp_path):
    with slurm.command(1, 1, "cpu", tmp_path, ["/bin/true"]) as command:
        waiting = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until("PENDING")
    assert waiting.wait(30) != 0
    assert not any("harness" in line for line in queued())


def test_several_scenarios_run_at_once(cluster, tmp_path):
    found = {}

    def one(seed):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found[seed] = run(folder, SMALL.replace(seed=seed))

    threads = [threading.Thread(target=one, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    running = 0
    while any(thread.is_alive() for thread in threads):
        running = max(running, sum("RUNNING" in line for line in queued()))
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert running == 2


def test_the_cluster_says_how_many_ranks_it_takes(cluster):
    assert slurm.find(4).count == 4
    assert slurm.find(4).reason == "1 nodes of 4 ranks each by sinfo"


def test_more_nodes_than_there_are_is_slurms_own_refusal(cluster, tmp_path):
    with pytest.raises(LaunchError, match=r"(?s)the launcher ended with 1.*srun: error: .*[Nn]ode"):
        run(tmp_path, TWO, placement=Placement(launcher="slurm", ranks_per_node=1))


def test_without_slurm_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="--launcher slurm: sinfo is not installed here"):
        slurm.find(4)
    (tmp_path / "test_suite.py").write_text(SUITE)
    found = module(tmp_path, "pytest", "-p", "no:cacheprovider", "--launcher", "slurm")
    assert found.returncode == 4
    assert "sinfo is not installed here" in found.stderr


def test_a_slurm_that_can_not_cancel_costs_no_run(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with slurm.command(1, 1, "cpu", tmp_path, ["/bin/true"]) as command:
        assert "--cpus-per-task=1" in command
    assert "may go on, see squeue" in (tmp_path / "launcher.log").read_text()


def test_a_queued_job_ends_with_its_session_however_that_ends(busy, tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "alone", "--launcher", "slurm"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    session = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    until("PENDING")
    session.kill()
    session.wait()
    assert gone()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"launcher": "k8s"}, "launcher 'k8s' is unknown; choose from local, slurm"),
        ({"ranks_per_node": 0}, "0 ranks a node is none"),
        ({"launcher": "slurm", "binding": "core"}, "--bind core is for this machine"),
    ],
)
def test_a_placement_that_can_not_work_is_refused(fields, message):
    with pytest.raises(HardwareError, match=message):
        Placement(**fields)


def test_ranks_come_out_even_over_nodes():
    assert [Placement(ranks_per_node=8).nodes(ranks) for ranks in (1, 8, 16, 24)] == [1, 1, 2, 3]
    with pytest.raises(HardwareError, match="9 ranks over 2 nodes do not come out even"):
        Placement(ranks_per_node=8).nodes(9)


def gone():
    """Whether Slurm soon knows of no job of ours."""
    end = time.monotonic() + 20
    while any("harness" in line for line in queued()):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


SUITE = """
import pytest
from harness import Layout, Scenario, cards, hardware

SMALL = Scenario(model="nano", steps=4, batch=4, sequence=16, eval_sequences=8)

@hardware("cpu")
@pytest.mark.parametrize("seed", [1, 2])
def test_alone(trainer, seed):
    trainer.run(SMALL.replace(seed=seed))

@hardware("cpu")
@cards(4)
def test_takes_more_than_there_is(trainer):
    pass
"""


def test_a_session_over_a_cluster(cluster, tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    options = ["-p", "no:cacheprovider", "-rs", "-n", "2", "--launcher", "slurm", "--ranks-per-node", "2"]
    found = module(tmp_path, "pytest", *options)
    assert "2 passed, 1 skipped" in found.stdout, found.stdout + found.stderr
    assert "needs 4 cpu devices, found 2" in found.stdout
    started, finished = (
        [path.stat().st_mtime for path in (tmp_path / ".harness/latest/runs").glob(f"*/{name}")]
        for name in ("started", "run.json")
    )
    assert len(started) == len(finished) == 2
    assert max(started) < min(finished), "one waited for the other"
