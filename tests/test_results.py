import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ResultsError
from harness.gate import Status, Verdict
from harness.results import Attempt, Results, TestResult, read
from tests.gate.builders import make_run


def results(**fields):
    attempt = Attempt(outcome="passed", verdicts=[Verdict(metric="loss", status=Status.PASS, value=1.0)], runs=["k"])
    test = TestResult(
        nodeid="suites/a.py::test_a[cpu]", hardware="cpu", baseline="cpu/a/test_a.json", attempts=[attempt]
    )
    return Results(
        started="2026-01-01T00:00:00Z", harness="0", tests=[test], runs={"k": make_run(peak_memory=1.0)}, **fields
    )


def folder(tmp_path, name="s"):
    made = tmp_path / "runs" / name
    made.mkdir(parents=True, exist_ok=True)
    return made


@given(st.floats())
def test_round_trip_of_any_number(tmp_path_factory, value):
    where = folder(tmp_path_factory.mktemp("r"))
    written = results()
    written.runs["k"] = make_run(peak_memory=value, curves={"loss": [value, 1.0]})
    written.write(where)
    back = read(where).runs["k"].metrics["peak_memory"]
    assert back == value or (back != back and value != value)


def test_latest_points_at_the_last_session(tmp_path):
    for name in ("one", "two"):
        results().write(folder(tmp_path, name))
        assert os.readlink(tmp_path / "latest") == f"runs/{name}"
    assert read(tmp_path / "latest").tests[0].nodeid.endswith("[cpu]")
    assert sorted(os.listdir(tmp_path)) == ["latest", "runs"]


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1}'])
def test_a_broken_file_is_told(tmp_path, text):
    (folder(tmp_path) / "results.json").write_text(text)
    with pytest.raises(ResultsError, match="can't be read") as caught:
        read(folder(tmp_path))
    assert len(str(caught.value).splitlines()) == 1


def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    results().write(folder(tmp_path))
    before = (folder(tmp_path) / "results.json").read_text()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.files.os.fsync", full)
    with pytest.raises(ResultsError, match="No space left on device"):
        results(fault="nan=3").write(folder(tmp_path))
    assert (folder(tmp_path) / "results.json").read_text() == before


def test_flaky_is_failed_then_passed():
    test = results().tests[0]
    for outcome, flaky in (("passed", False), ("failed", False), ("passed", True)):
        test.add(Attempt(outcome=outcome))
        assert test.flaky is flaky
    assert len(test.attempts) == 4


def test_results_of_a_newer_version_ask_for_it(tmp_path):
    (tmp_path / "results.json").write_text('{"schema_version": 99}')
    with pytest.raises(ResultsError, match="have schema 99, newer than 3: upgrade mindspore-harness"):
        read(tmp_path)


def test_results_of_an_older_version_are_read(tmp_path):
    (tmp_path / "results.json").write_text(
        '{"schema_version": 1, "started": "2026-01-01T00:00:00Z", "harness": "0.0.9"}'
    )
    assert read(tmp_path).harness == "0.0.9"
