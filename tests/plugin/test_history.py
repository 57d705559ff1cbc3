"""What a session stores of itself, and what it takes from those before."""

import sqlite3

import pytest

from harness.history.database import History
from tests.plugin.sessions import approve, gated, run, suite


def series(project):
    history = History(str(project.path / ".harness" / "history.sqlite"))
    return {(s.test.rpartition("::")[2], s.metric): [p.value for p in history.trend(s)] for s in history.series()}


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_every_run_adds_its_values(project, workers):
    gated(project, memory=100.0)
    run(project, *workers)
    approve(project)
    gated(project, memory=120.0)
    run(project, *workers)
    found = series(project)
    assert len(found) == 9
    assert found["test_gated[a-cpu]", "peak_memory"] == [100.0, 120.0]
    assert found["test_gated[b-cpu]", "loss"] == [2.0, 2.0]
    assert found["test_gated[c-cpu]", "throughput"] == [1000.0, 1000.0]


def test_a_planted_fault_leaves_no_trace(project):
    gated(project)
    run(project, "--plant", "nan=1")
    assert not (project.path / ".harness" / "history.sqlite").exists()


def test_it_can_be_off_or_elsewhere(project, monkeypatch):
    gated(project)
    run(project, "--history", "off")
    assert not (project.path / ".harness" / "history.sqlite").exists()
    run(project, "--history", "elsewhere/h.sqlite")
    assert (project.path / "elsewhere" / "h.sqlite").is_file()
    monkeypatch.setenv("HARNESS_HISTORY", "sqlite:///by-environment.sqlite")
    run(project)
    assert (project.path / "by-environment.sqlite").is_file()


@pytest.mark.parametrize("broken", ["corrupt", "locked"])
def test_the_gate_decides_without_it_and_says_what_was_not_stored(project, broken):
    gated(project)
    run(project)
    approve(project)
    path = project.path / ".harness" / "history.sqlite"
    holder = sqlite3.connect(path)
    if broken == "corrupt":
        holder.close()
        for file in path.parent.glob("history.sqlite*"):
            file.unlink()
        path.write_text("no database " * 200)
    else:
        holder.execute("BEGIN IMMEDIATE")
    good = run(project)
    assert good.ret == 0
    reason = "file is not a database" if broken == "corrupt" else "database is locked"
    good.stdout.fnmatch_lines([f"harness: history history.sqlite: 9 values were not stored: {reason}"])
    gated(project, memory=200.0)
    bad = run(project)
    assert bad.ret == 1
    bad.stdout.fnmatch_lines(["*REGRESSED*peak_memory*"])
    holder.close()


@pytest.mark.parametrize("given", ["option", "environment"])
def test_an_address_that_is_none_is_a_usage_error(project, monkeypatch, given):
    gated(project)
    monkeypatch.setenv("HARNESS_HISTORY", "nonsense://me:secret@x" if given == "environment" else "off")
    found = run(project, *(["--history", "nonsense://me:secret@x"] if given == "option" else []))
    assert found.ret == 4
    found.stderr.fnmatch_lines(["*history: the driver of nonsense is not installed*"])
    assert "secret" not in found.stderr.str()


STEADY = """
from harness import hardware
from tests.gate.builders import make_run

@hardware("cpu")
def test_speed(gate):
    gate.check(make_run(throughput={throughput}))
"""


def test_recent_runs_narrow_what_the_screen_expects(project):
    """One approved run expects nearly everything; ten steady ones since then do not, and never moved the center."""
    suite(project, STEADY.format(throughput=1000.0))
    run(project)
    approve(project)
    suite(project, STEADY.format(throughput=850.0))
    run(project, "--history", "off").assert_outcomes(passed=1)
    for throughput in range(1000, 970, -3):
        suite(project, STEADY.format(throughput=throughput))
        run(project).assert_outcomes(passed=1)
    suite(project, STEADY.format(throughput=850.0))
    told = run(project)
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines(["*1000 → 850*outside * expected after 1 approved run and 10 recent ones*"])
