import pytest
from typer.testing import CliRunner

from harness import cli
from harness.errors import HistoryError
from harness.history import FILE
from tests.history.test_courses import approve, filled


@pytest.fixture
def history(tmp_path, monkeypatch):
    filled(tmp_path, step_time=[1.0] * 8 + [1.2] * 8, peak_memory=[50.0] * 3)
    approve(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_HISTORY", raising=False)
    return lambda *arguments: CliRunner().invoke(cli.app, ["history", *arguments])


def test_it_lists_filters_and_plots(history):
    everything = history("--history", "h.sqlite")
    assert everything.exit_code == 0
    assert "+20.00 % on 2026-01-09" in everything.output
    assert "run.peak_memory" in everything.output
    filtered = history("--history", "h.sqlite", "--metric", "step", "--plot")
    assert "run.peak_memory" not in filtered.output
    assert "run.step_time of suites/training/test_x.py::test_a[cpu]" in filtered.output
    assert "┤" in filtered.output
    assert "no series of that name" in history("--history", "h.sqlite", "--test", "nowhere").output


def test_by_default_it_is_the_one_beside_the_results(history, tmp_path):
    missing = history()
    assert isinstance(missing.exception, HistoryError)
    assert "run a suite, or give --history URL" in str(missing.exception)
    (tmp_path / ".harness").mkdir()
    filled(tmp_path / ".harness", FILE, step_time=[1.0])
    assert "run.step_time" in history().output
