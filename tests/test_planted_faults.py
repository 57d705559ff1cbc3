"""A fault planted into a real training run turns the matching metric red, and only sensible ones."""

import re

import pytest
from junitparser import JUnitXml

from harness.results import read
from tests.processes import ROOT, module

SUITE = """
from harness import Layout, Scenario, cards, hardware

SCENARIO = Scenario(model="nano", steps=12, batch=8, sequence=32, warmup_steps=2, eval_sequences=16, samples=8)


@hardware("cpu")
def test_one_process(trainer, gate):
    gate.check(trainer.run(SCENARIO))


@hardware("cpu")
def test_speed(trainer, gate):
    # A factor of four either way: no neighbour on a shared machine does that to this run.
    policy = {"machine": {"lane": "gating", "relative": 0.75}, "step_time": {"relative": 3.0}}
    gate.check(trainer.run(SCENARIO), only=["throughput", "step_time", "achieved_flops"], policy=policy)


@hardware("cpu")
@cards(2)
def test_two_ranks(trainer, gate):
    gate.check(trainer.run(SCENARIO.replace(layout=Layout(dp=2), samples=0)))
"""

CONFIGURATION = """
[tool.harness.policy.machine]
lane = "advisory"
# Other tests run beside this one.
shared = 1.0
spread = 100.0
"""

TRAINING = {"loss", "grad_norm", "update_norm", "learning_rate", "validation_perplexity", "token_accuracy"}
TEXT = {"distinct_1", "distinct_2", "distinct_3", "repetition", "longest_repeat", "self_similarity", "empty_outputs"}
TIMES = {"throughput", "step_time", "achieved_flops"}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose healthy run is approved and passes."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "suites").mkdir()
    (folder / "suites" / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "pyproject.toml").write_text(CONFIGURATION)
    module(folder, "pytest", "-q", "suites")
    approved = module(folder, "harness.cli", "baseline", "approve", "--reason", "healthy", "--by", "tests")
    assert approved.returncode == 0, approved.stderr
    healthy = module(folder, "pytest", "-q", "suites")
    assert healthy.returncode == 0, healthy.stdout
    return folder


def plant(project, fault, test):
    """Runs one test with a fault and returns the metrics that failed, and what JUnit says of it."""
    done = module(project, "pytest", "-q", "--plant", fault, "-k", test, "--junitxml=junit.xml", "suites")
    assert done.returncode == 1, done.stdout + done.stderr
    results = read(project / ".harness" / "latest")
    assert results.fault.startswith(fault.partition("=")[0])
    assert not (project / ".harness" / "latest" / "candidates").exists()
    case = next(iter(next(iter(JUnitXml.fromfile(str(project / "junit.xml"))))))
    assert case.name == f"{test}[cpu]"
    red = {verdict.metric for _, verdict in results.verdicts if verdict.fails}
    for metric in red:
        assert f"run.{metric}" in case.result[0].text
    return red, results


def test_a_slowed_step(project):
    red, _ = plant(project, "slow_step=15", "test_speed")
    assert red == TIMES


def test_a_slowed_step_changes_nothing_else(project):
    done = module(project, "pytest", "-q", "--plant", "slow_step=1", "-k", "test_one_process", "suites")
    assert done.returncode == 0, done.stdout


def test_a_slow_rank_is_named(project):
    """It changes no number, and no machine fails by it in the advisory lane; the session still says who it was."""
    done = module(project, "pytest", "-q", "--plant", "slow_rank=4", "-k", "test_two_ranks", "suites")
    assert done.returncode == 0, done.stdout
    assert "StragglerWarning: rank 1 holds up the others" in done.stdout


def test_raised_memory(project):
    red, results = plant(project, "memory=64", "test_one_process")
    assert red == {"peak_memory"}
    verdict = next(v for _, v in results.verdicts if v.metric == "peak_memory")
    assert verdict.value - verdict.baseline == pytest.approx(64, abs=8)


def test_a_wrong_learning_rate(project):
    red, results = plant(project, "learning_rate=3", "test_one_process")
    assert {"learning_rate", "loss", "update_norm"} <= red <= TRAINING | TEXT
    steps = {v.metric: v.step for _, v in results.verdicts if v.fails}
    assert steps["learning_rate"] == 1
    assert steps["update_norm"] == 1
    assert steps["loss"] == 2
    (warning,) = next(run.warnings for run in results.runs.values())
    assert "step 1: the learning rate left its schedule" in warning


def test_a_dropped_gradient_reduction_on_one_rank(project):
    red, results = plant(project, "dropped_reduction", "test_two_ranks")
    assert "diverged_replicas" in red
    assert red <= {"diverged_replicas", *TRAINING} - {"learning_rate"}
    verdict = next(v for _, v in results.verdicts if v.metric == "diverged_replicas")
    assert (verdict.baseline, verdict.value) == (0, 1)


def test_nan_at_a_step(project):
    red, results = plant(project, "nan=5", "test_one_process")
    assert {"loss", "grad_norm", "update_norm", "validation_perplexity"} <= red
    assert red <= (TRAINING | TEXT) - {"learning_rate"}
    loss = next(v for _, v in results.verdicts if v.metric == "loss")
    assert loss.status.value == "INVALID"
    assert loss.step == 5


def test_a_degenerate_generator_passes_on_loss_alone(project):
    red, results = plant(project, "degenerate_generator", "test_one_process")
    assert {"distinct_2", "distinct_3", "repetition"} <= red <= TEXT
    passed = {v.metric for _, v in results.verdicts if v.status.value == "PASS"}
    assert {"loss", "validation_perplexity", "token_accuracy", "tokens_seen"} <= passed


def test_a_rank_that_dies_fails_the_test_with_its_log(project):
    """A memory fault larger than any machine: the rank itself fails, and says why."""
    done = module(project, "pytest", "-q", "--plant", "memory=1e9", "-k", "test_one_process", "suites")
    assert done.returncode == 1
    assert "a rank failed: rank 0 exited with 1" in done.stdout
    assert "rank 0 wrote last:" in done.stdout
    assert str(project) not in done.stdout.partition("a rank failed")[2].partition("short test summary")[0]


def test_a_leak_is_caught_by_the_memory_suite(tmp_path):
    """64 KiB a step, 6 MiB in a hundred."""
    suite = ["suites/memory/test_leak.py", "-m", "cpu", "--results", str(tmp_path), "--history", "off"]
    done = module(ROOT, "pytest", "-q", *suite, "--plant", "leak=0.0625")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"AssertionError: [4-9]\.\d MiB in a hundred steps", done.stdout), done.stdout


def test_a_data_pipeline_that_starves_training_is_named(tmp_path):
    suite = ["suites/data/test_pipeline.py", "-m", "cpu", "-k", "does_not_wait", "--results", str(tmp_path)]
    done = module(ROOT, "pytest", "-q", *suite, "--history", "off", "--plant", "slow_data=0.4")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"TrainingWarning: the data pipeline is the bottleneck: .* for [3-9]\d% of the time", done.stdout)
