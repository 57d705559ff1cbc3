import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness import cli
from harness.commands.baseline import approve, changes, orphans, stored
from harness.errors import BaselineError, ResultsError
from harness.gate import Status, Verdict, baseline
from harness.gate.baseline import BaselineFile, baseline_path
from harness.results import Attempt, Results, TestResult
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
    assert [c.test.nodeid for c in changes(folder, tmp_path / "baselines")] == [NODE.format("a")]
    taken = approve(folder, tmp_path / "baselines", "first", by="Ada")
    assert [str(path) for path in taken] == ["cpu/training/test_x/test_a.json"]
    stored_values = {str(path): content.runs["run"] for path, content in stored(tmp_path / "baselines")}
    record = stored_values["cpu/training/test_x/test_a.json"]
    assert record.metrics == {"peak_memory": 1.0}
    assert (record.approved.by, record.approved.reason) == ("Ada", "first")
    assert changes(folder, tmp_path / "baselines") == []
    taken = approve(folder, tmp_path / "baselines", "all", by="Ada", everything=True)
    assert [path.name for path in taken] == ["test_b.json"]


def test_only_narrows_by_test_or_file(tmp_path):
    folder = session(tmp_path, a=(new(1.0), Status.REGRESSED), b=(new(2.0), Status.REGRESSED))
    baselines = tmp_path / "baselines"
    for only in ("test_b", NODE.format("b"), "cpu/*/test_b.json"):
        assert [c.test.baseline for c in changes(folder, baselines, only)] == ["cpu/training/test_x/test_b.json"]
    assert len(changes(folder, baselines, only="cpu/training/*")) == 2
    assert changes(folder, baselines, only="nothing") == []


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
    assert changes(folder, tmp_path / "baselines", everything=True) == []
    assert baseline.read(tmp_path / "baselines/cpu/training/test_x/test_a.json") == old


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
    (tmp_path / "suites" / "training" / "test_x.py").write_text("def test_other(): pass\n")
    with pytest.raises(BaselineError, match="no test with @hardware was collected"):
        orphans(tmp_path / "baselines", tmp_path)
    (tmp_path / "suites" / "training" / "test_x.py").write_text("import nowhere\n")
    with pytest.raises(BaselineError, match="can't be collected"):
        orphans(tmp_path / "baselines", tmp_path)


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
        assert approved.output.strip() == "approved baselines/cpu/training/test_x/test_a.json"
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
