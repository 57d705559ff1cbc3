"""What comes first, what may train side by side, and what is said of the rest."""

import json

import pytest

from tests.plugin.sessions import results, run, suite

ORDERED = """
from harness import hardware, smoke

@hardware("cpu")
def test_slow(trainer):
    pass

@hardware("cpu")
@smoke
def test_quick(trainer):
    pass
"""

UNTIMED = """
from harness import hardware, untimed

@hardware("cpu")
@untimed
def test_untimed(trainer):
    pass
"""

SHARING = """
import pytest
from harness import Scenario, hardware, untimed
from harness.errors import Undefined

SCENARIO = Scenario(model="nano", steps=4, batch=4, sequence=16, eval_sequences=0)

@untimed
@hardware("cpu")
@pytest.mark.parametrize("seed", [1, 2])
def test_numbers(trainer, gate, seed):
    run = trainer.run(SCENARIO.replace(seed=seed))
    assert run.curve("loss")
    again = [trainer.run(SCENARIO.replace(seed=seed), fresh=True) for _ in range(2)]
    assert len({run.key, *(each.key for each in again)}) == 3, "a fresh run is never an earlier one"
    assert not any(each.reused_graphs for each in again)
    with pytest.raises(Undefined, match="is marked untimed"):
        run["throughput"]
    with pytest.raises(Undefined, match="is marked untimed"):
        run.typical_step_time
    gate.check(run, only=["loss", "throughput"])

@hardware("cpu")
def test_times(trainer):
    run = trainer.run(SCENARIO.replace(seed=1))
    assert run["throughput"] > 0
    assert run["compile_time"] > 0
    assert run.reused_graphs == 0

@untimed
@hardware("cpu")
def test_reuse(trainer):
    first, scenario = trainer.run(SCENARIO.replace(steps=5)), SCENARIO.replace(steps=6)
    second, faulty = trainer.run(scenario), trainer.run(scenario, fault="learning_rate=2")
    assert [run.reused_graphs for run in (first, second, faulty)] == [0, 2, 2]
"""


def test_quick_claims_come_first_and_untimed_ones_last(project):
    suite(project, UNTIMED + ORDERED)
    shown = run(project, "-v").stdout.str()
    places = [shown.index(f"::{name}") for name in ("test_quick", "test_slow", "test_untimed")]
    assert places == sorted(places)
    run(project, "-m", "cpu and smoke").assert_outcomes(passed=1, deselected=2)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_untimed_trainings_have_no_times_however_many_workers_there_are(project, workers):
    suite(project, SHARING)
    run(project, "-n", workers, "-k", "not reuse")
    found = results(project)
    shared = {key: each.shared for key, each in found.runs.items()}
    # Between workers it is chance whether the timed run is done when the untimed test asks for it.
    assert sorted(shared.values()) == [False] + [True] * (5 if workers == "0" else len(shared) - 1)
    assert all(("-shared" in key) == value for key, value in shared.items())
    statuses = {v.metric: v.status.value for test in found.tests for v in test.last.verdicts}
    assert statuses["throughput"] == "INVALID"
    assert statuses["loss"] == "NO_BASELINE"


def test_untimed_trainings_reuse_graphs_and_timed_ones_compile_their_own(project):
    suite(project, SHARING)
    run(project, "-k", "1 or reuse or times").assert_outcomes(failed=1, passed=2)
    assert sorted(found.reused_graphs for found in results(project).runs.values()) == [0, 0, 0, 0, 2, 2]
    assert not list(project.path.glob(".harness/**/*.mindir")), "a session leaves none"


def test_in_ci_each_test_has_a_line_with_what_is_left(project, monkeypatch):
    monkeypatch.setenv("CI", "true")
    suite(project, ORDERED)
    found = run(project)
    found.stdout.fnmatch_lines(
        [
            "harness: 2 tests left, for how long is not known yet",
            "*::test_quick?cpu? PASSED (1 test left, about 1 s)*",
            "*::test_slow?cpu? PASSED (nothing left)*",
        ]
    )


def test_workers_say_it_too(project, monkeypatch):
    monkeypatch.setenv("CI", "true")
    suite(project, ORDERED)
    run(project, "-n", "2").stdout.fnmatch_lines(["harness: 2 tests left*", "*PASSED*(nothing left)*"])


def test_the_history_tells_how_long_it_takes(project):
    suite(project, SHARING.replace("gate.check(run, only", "gate.check(run, label='x', only"))
    run(project, "-k", "numbers")
    run(project, "-k", "numbers").stdout.fnmatch_lines(["harness: 2 tests of 6 runs left, about * s"])


def test_sessions_that_train_nothing_are_left_as_they_are(project, monkeypatch):
    monkeypatch.setenv("CI", "true")
    suite(project, "def test_x():\n    pass\n")
    found = run(project)
    assert "tests left" not in found.stdout.str()
    assert "PASSED" not in found.stdout.str()


def test_another_way_of_starting_is_refused_by_name(project):
    suite(project, ORDERED)
    run(project, "--start", "thread").stderr.fnmatch_lines(["*start 'thread' is unknown; choose from fork, fresh"])


def test_fresh_processes_where_they_are_asked_for(project):
    suite(project, SHARING)
    run(project, "-k", "times", "--start", "fresh")
    request = next((project.path / ".harness/latest/runs").glob("*/machine.json"))
    assert json.loads(request.read_text())["cores"] >= 1
    (found,) = results(project).runs.values()
    assert found.phases["start"] > 0.5
