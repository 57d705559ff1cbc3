import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness import cli
from harness.commands.baseline import Selection, approve, changes, orphans, stored
from harness.errors import BaselineError, ResultsError
from harness.gate import Status, Verdict, baseline
from harness.gate.baseline import BaselineFile, baseline_path
from harness.results import FILE, Attempt, Results, TestResult, read
from tests.gate.builders import make_record, make_run

NODE = "suites/training/test_x.py::test_{}[cpu]"


@pytest.fixture(autouse=True)
def no_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)


def session(root: Path, **tests) -> Path:
    """A session's folder with one test a keyword: (run, status of peak_memory)."""
    folder = root / ".harness" / "runs" / "s"
    found = Results(started="2026-01-01T00:00:00Z", harness="0")
    for name, (run, status) in tests.items():
        path = baseline_path(NODE.format(name), "cpu")
        baseline.write(folder / "candidates" / path, BaselineFile(runs={"run": make_record(run)}))
        verdict = Verdict(metric="peak_memory", label="run", status=status, value=run.metrics["peak_memory"])
        found.tests.append(
            TestResult(
                nodeid=NODE.format(name),
                hardware="cpu",
                baseline=str(path),
                attempts=[Attempt(outcome="failed", verdicts=[verdict])],
            )
        )
    folder.mkdir(parents=True, exist_ok=True)
    found.write(folder)
    return folder


def new(memory):
    return make_run(peak_memory=memory)


def test_only_what_is_not_as_approved_is_taken(tmp_path):
    folder = session(tmp_path, a=(new(1.0), Status.NO_BASELINE), b=(new(2.0), Status.PASS))
    assert [str(c.baseline) for c in changes(folder, tmp_path / "baselines")] == ["cpu/training/test_x/test_a.json"]
    taken = approve(folder, tmp_path / "baselines", "first", by="Ada")
    assert [str(change.baseline) for change in taken] == ["cpu/training/test_x/test_a.json"]
    stored_values = {str(path): content.runs["run"] for path, content in stored(tmp_path / "baselines")}
    record = stored_values["cpu/training/test_x/test_a.json"]
    assert record.metrics == {"peak_memory": 1.0}
    assert (record.approved.by, record.approved.reason) == ("Ada", "first")
    assert changes(folder, tmp_path / "baselines") == []
    taken = approve(folder, tmp_path / "baselines", "all", by="Ada", selection=Selection(everything=True))
    assert [change.baseline.name for change in taken] == ["test_b.json"]


def test_only_narrows_by_test_or_file(tmp_path):
    folder = session(tmp_path, a=(new(1.0), Status.REGRESSED), b=(new(2.0), Status.REGRESSED))
    baselines = tmp_path / "baselines"
    for only in ("test_b", NODE.format("b"), "cpu/*/test_b.json"):
        assert [str(c.baseline) for c in changes(folder, baselines, Selection(only))] == [
            "cpu/training/test_x/test_b.json"
        ]
    assert len(changes(folder, baselines, Selection("cpu/training/*"))) == 2
    assert changes(folder, baselines, Selection("nothing")) == []


def test_a_label_that_went_is_a_change(tmp_path):
    folder = session(tmp_path, a=(new(1.0), Status.PASS))
    old = BaselineFile(runs={"run": make_record(new(1.0)), "gone": make_record(new(1.0))})
    baseline.write(tmp_path / "baselines/cpu/training/test_x/test_a.json", old)
    assert len(changes(folder, tmp_path / "baselines")) == 1
    approve(folder, tmp_path / "baselines", "no longer checked", by="Ada")
    kept = baseline.read(tmp_path / "baselines/cpu/training/test_x/test_a.json")
    assert list(kept.runs) == ["run"]
    assert changes(folder, tmp_path / "baselines") == []


def test_an_expected_failure_is_never_approved(tmp_path):
    folder = session(tmp_path, a=(new(9.0), Status.XFAIL))
    old = BaselineFile(runs={"run": make_record(new(1.0))})
    baseline.write(tmp_path / "baselines/cpu/training/test_x/test_a.json", old)
    assert changes(folder, tmp_path / "baselines") == []
    assert changes(folder, tmp_path / "baselines", selection=Selection(everything=True)) == []
    assert baseline.read(tmp_path / "baselines/cpu/training/test_x/test_a.json") == old


@pytest.mark.parametrize("everything", [False, True])
def test_an_expected_failure_of_a_time_is_never_approved(tmp_path, everything):
    run = make_run(step_time=2.0, compile_time=1.0)
    folder = session(tmp_path, a=(make_run(peak_memory=1.0, step_time=2.0, compile_time=1.0), Status.PASS))
    found = read(folder)
    scope = {"label": "run", "scope": "machine"}
    found.tests[0].attempts[0].verdicts += [
        Verdict(metric="step_time", status=Status.XFAIL, value=2.0, **scope),
        Verdict(metric="compile_time", status=Status.IMPROVED, value=1.0, **scope),
    ]
    found.write(folder)
    old = make_record(make_run(peak_memory=1.0, step_time=1.0, compile_time=9.0))
    old.machines[run.machine].metrics["step_time"] *= 5
    path = tmp_path / "baselines/cpu/training/test_x/test_a.json"
    baseline.write(path, BaselineFile(runs={"run": old}))
    approve(folder, tmp_path / "baselines", "faster compiler", by="Ada", selection=Selection(everything=everything))
    times = baseline.read(path).runs["run"].machines[run.machine].metrics
    assert times == {"step_time": [1.0] * 5, "compile_time": [1.0]}


@pytest.mark.parametrize("status", [Status.INCONCLUSIVE, Status.REGRESSED])
def test_a_time_that_passed_keeps_its_runs_when_another_is_approved_or_was_not_measured(tmp_path, status):
    """Ten approved runs of compile_time are worth more than the one of today, which is as they are."""
    run = make_run(peak_memory=1.0, step_time=2.0, compile_time=1.01)
    folder = session(tmp_path, a=(run, Status.REGRESSED))
    found = read(folder)
    scope = {"label": "run", "scope": "machine"}
    found.tests[0].attempts[0].verdicts += [
        Verdict(metric="step_time", status=status, value=2.0, **scope),
        Verdict(metric="compile_time", status=Status.PASS, value=1.01, **scope),
    ]
    found.write(folder)
    if status is Status.INCONCLUSIVE:
        candidates = make_record(run)
        candidates.machines[run.machine].metrics["step_time"] = []
        path = folder / "candidates" / "cpu/training/test_x/test_a.json"
        baseline.write(path, BaselineFile(runs={"run": candidates}))
    old = make_record(make_run(peak_memory=5.0, step_time=1.0, compile_time=1.0))
    for name in ("step_time", "compile_time"):
        old.machines[run.machine].metrics[name] *= 10
    path = tmp_path / "baselines/cpu/training/test_x/test_a.json"
    baseline.write(path, BaselineFile(runs={"run": old}))
    approve(folder, tmp_path / "baselines", "less memory", by="Ada")
    stored_run = baseline.read(path).runs["run"]
    assert stored_run.metrics == {"peak_memory": 1.0}
    times = stored_run.machines[run.machine].metrics
    assert times["compile_time"] == [1.0] * 10
    assert times["step_time"] == ([1.0] * 10 if status is Status.INCONCLUSIVE else [2.0])


def test_approving_is_refused_under_ci(tmp_path, monkeypatch):
    folder = session(tmp_path, a=(new(1.0), Status.NO_BASELINE))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(BaselineError, match="refused under CI"):
        approve(folder, tmp_path / "baselines", "first", by="Ada")
    assert not (tmp_path / "baselines").exists()


def test_one_bad_value_and_nothing_is_written(tmp_path):
    folder = session(tmp_path, a=(new(1.0), Status.NO_BASELINE), b=(new(float("nan")), Status.INVALID))
    with pytest.raises(BaselineError, match="non-finite peak_memory"):
        approve(folder, tmp_path / "baselines", "first", by="Ada")
    assert not (tmp_path / "baselines").exists()


def test_a_reason_is_asked_for(tmp_path):
    folder = session(tmp_path, a=(new(1.0), Status.NO_BASELINE))
    with pytest.raises(BaselineError, match="needs a reason"):
        approve(folder, tmp_path / "baselines", " ", by="Ada")


def test_a_session_without_results_is_told(tmp_path):
    with pytest.raises(ResultsError, match="no results in x: run a suite first"):
        changes(tmp_path / "x", tmp_path / "baselines")


def test_orphans_are_baselines_without_a_test(tmp_path):
    (tmp_path / "suites" / "training").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -v -m cpu\n")
    test = "from harness import hardware\n\n@hardware('cpu', 'ascend')\ndef test_a(gate): pass\n"
    (tmp_path / "suites" / "training" / "test_x.py").write_text(test)
    for name in ("a", "gone"):
        for hardware in ("cpu", "ascend"):
            path = baseline_path(NODE.format(name).replace("cpu", hardware), hardware)
            baseline.write(tmp_path / "baselines" / path, BaselineFile(runs={}))
    found = sorted(map(str, orphans(tmp_path / "baselines", tmp_path)))
    assert found == ["ascend/training/test_x/test_gone.json", "cpu/training/test_x/test_gone.json"]
    (tmp_path / "suites" / "training" / "test_x.py").write_text("import pytest\npytest.importorskip('nowhere')\n")
    assert orphans(tmp_path / "baselines", tmp_path) == []
    with pytest.raises(BaselineError, match="no test module of any baseline is here; run this in the project's folder"):
        orphans(tmp_path / "baselines", tmp_path / "suites" / "training")
    (tmp_path / "suites" / "training" / "test_x.py").write_text("import nowhere\n")
    with pytest.raises(BaselineError, match="can't be collected"):
        orphans(tmp_path / "baselines", tmp_path)


def test_tighten_takes_improvements_and_leaves_what_got_worse(tmp_path):
    folder = session(tmp_path, a=(new(1.0), Status.IMPROVED), b=(new(9.0), Status.REGRESSED))
    baselines = tmp_path / "baselines"
    for name in "ab":
        old = BaselineFile(runs={"run": make_record(new(5.0)), "other": make_record(new(7.0))})
        baseline.write(baselines / f"cpu/training/test_x/test_{name}.json", old)
    taken = approve(folder, baselines, "faster", by="Ada", selection=Selection(tighten=True))
    assert [change.baseline.name for change in taken] == ["test_a.json"]
    kept = {path.stem: content.runs for path, content in stored(baselines)}
    assert kept["test_a"]["run"].metrics == {"peak_memory": 1.0}
    assert kept["test_a"]["other"].metrics == {"peak_memory": 7.0}
    assert kept["test_b"]["run"].metrics == {"peak_memory": 5.0}


def commit_all(folder):
    for command in (["add", "-A"], ["-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


def test_a_dirty_worktree_is_refused_unless_told(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "model.py").write_text("one")
    commit_all(tmp_path)
    folder = session(tmp_path, a=(new(1.0), Status.NO_BASELINE))
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "note.json").write_text("changes here do not count")
    (tmp_path / "model.py").write_text("two")
    with pytest.raises(BaselineError, match=r"1 file\(s\) are not committed \(M model.py …\): commit first"):
        approve(folder, tmp_path / "baselines", "first", by="Ada")
    assert not (tmp_path / "baselines" / "cpu").exists()
    (change,) = approve(folder, tmp_path / "baselines", "first", by="Ada", dirty=True)
    written = baseline.read(tmp_path / "baselines" / change.baseline).runs["run"]
    assert written.approved.commit.endswith("-dirty")


def test_a_session_that_ran_dirty_is_refused_even_when_all_is_committed_now(tmp_path):
    folder = session(tmp_path, a=(new(1.0), Status.NO_BASELINE))
    found = read(folder)
    found.dirty = True
    found.write(folder)
    with pytest.raises(BaselineError, match="the session ran with uncommitted changes"):
        approve(folder, tmp_path / "baselines", "first", by="Ada")


def test_two_sessions_approving_at_once_lose_no_update(tmp_path):
    """Each of several processes approves another label of one file, all at the same time."""
    script = """
import sys
from pathlib import Path
from harness.commands.baseline import approve
from harness.gate import baseline
folder, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
approve(folder / name, folder / "baselines", f"by {name}", by=name)
"""
    names = [f"s{i}" for i in range(4)]
    path = baseline_path(NODE.format("a"), "cpu")
    everything = {name: make_record(new(1.0)) for name in names}
    baseline.write(tmp_path / "baselines" / path, BaselineFile(runs=everything))
    for i, name in enumerate(names):
        runs = {**everything, name: make_record(new(10.0 + i))}
        baseline.write(tmp_path / name / "candidates" / path, BaselineFile(runs=runs))
        verdict = Verdict(metric="peak_memory", label=name, status=Status.REGRESSED)
        test = TestResult(nodeid=NODE.format("a"), hardware="cpu", baseline=str(path))
        test.add(Attempt(outcome="failed", verdicts=[verdict]))
        results = Results(started="2026-01-01T00:00:00Z", harness="0", tests=[test])
        (tmp_path / name / FILE).write_text(results.model_dump_json())
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), name], **pipes) for name in names]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.wait(timeout=60) for process in processes] == [0] * 4
    kept = baseline.read(tmp_path / "baselines" / path).runs
    assert {name: kept[name].metrics["peak_memory"] for name in names} == {f"s{i}": 10.0 + i for i in range(4)}
    assert {name: kept[name].approved.by for name in names} == {name: name for name in names}


class TestCommandLine:
    """Exit codes and messages, through the real command line."""

    def run(self, monkeypatch, folder, *arguments):
        monkeypatch.chdir(folder)
        return CliRunner().invoke(cli.app, list(arguments))

    def test_diff_approve_list_prune(self, tmp_path, monkeypatch):
        session(tmp_path, a=(new(1.0), Status.NO_BASELINE))
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
        diff = self.run(monkeypatch, tmp_path, "baseline", "diff")
        assert (diff.exit_code, "run.peak_memory" in diff.output) == (1, True)
        approved = self.run(monkeypatch, tmp_path, "baseline", "approve", "--reason", "why [not]", "--by", "Ada")
        assert approved.output.splitlines()[-1] == "approved baselines/cpu/training/test_x/test_a.json"
        listed = self.run(monkeypatch, tmp_path, "baseline", "list")
        assert "why" in listed.output
        again = self.run(monkeypatch, tmp_path, "baseline", "diff")
        assert (again.exit_code, "nothing to approve" in again.output) == (0, True)
        (tmp_path / "suites").mkdir()
        other = "from harness import hardware\n\n@hardware('cpu')\ndef test_other(gate): pass\n"
        (tmp_path / "suites" / "test_other.py").write_text(other)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        assert self.run(monkeypatch, tmp_path, "baseline", "prune").exit_code == 1
        assert self.run(monkeypatch, tmp_path, "baseline", "prune", "--delete").exit_code == 0
        assert not list((tmp_path / "baselines").rglob("*.json"))

    def test_an_error_is_one_line_and_exit_code_2(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["harness", "baseline", "diff"])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert caught.value.code == 2
        assert capsys.readouterr().err == "error: no results in latest: run a suite first (pytest -m cpu suites)\n"

    def test_an_environment_change_is_approved_with_one_reason_and_lists_what_moved(self, tmp_path, monkeypatch):
        before = new(100.0)
        folder = session(tmp_path, a=(new(101.0), Status.PASS), b=(new(150.0), Status.ENVIRONMENT_CHANGED))
        for name in "ab":
            path = f"baselines/cpu/training/test_x/test_{name}.json"
            baseline.write(tmp_path / path, BaselineFile(runs={"run": make_record(before)}))
        found = read(folder)
        for test in found.tests:
            verdict = test.attempts[0].verdicts[0]
            verdict.baseline, verdict.environment_changes = 100.0, ["mindspore: 2.9.0 → 2.10.0"]
        found.write(folder)
        done = self.run(monkeypatch, tmp_path, "baseline", "approve", "--reason", "MindSpore 2.10", "--by", "Ada")
        assert done.exit_code == 0
        table, rest = done.output.split("the environment changed")
        assert "+50.00 %" in table
        assert "101" not in table
        assert rest.startswith(" (mindspore: 2.9.0 → 2.10.0): 1 value(s) stayed within tolerance")
        assert rest.count("approved baselines") == 2

    def test_everything_and_improvements_alone_contradict_each_other(self, tmp_path, monkeypatch):
        session(tmp_path, a=(new(1.0), Status.IMPROVED))
        done = self.run(monkeypatch, tmp_path, "baseline", "approve", "--reason", "x", "--all", "--tighten")
        assert done.exit_code == 1
        assert "give one of them" in str(done.exception)
