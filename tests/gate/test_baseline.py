import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.errors import BaselineError
from harness.gate import baseline
from harness.gate.baseline import BaselineFile, baseline_path
from tests.gate.builders import make_record, make_run

CONTENT = BaselineFile(
    runs={"run": make_record(make_run(peak_memory=1.5, throughput=3.0, curves={"loss": [3.0, 2.0]}))}
)

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, st.lists(finite, min_size=1, max_size=5))
def test_json_round_trip(tmp_path_factory, scalar, curve):
    path = tmp_path_factory.mktemp("b") / "x.json"
    content = BaselineFile(runs={"run": make_record(make_run(peak_memory=scalar, curves={"loss": curve}))})
    baseline.write(path, content)
    assert baseline.read(path) == content


def test_one_sorted_value_a_line(tmp_path):
    baseline.write(tmp_path / "x.json", CONTENT)
    lines = (tmp_path / "x.json").read_text().splitlines()
    assert '    "peak_memory": 1.5' in lines
    assert "     3.0," in lines
    content = json.loads("\n".join(lines))
    assert list(content["runs"]["run"]) == sorted(content["runs"]["run"])


def test_a_missing_file_is_no_baseline(tmp_path):
    assert baseline.read(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is corrupt .it is empty.; restore it"),
        ("{", "is corrupt .JSONDecodeError"),
        ("[]", "is corrupt"),
        ('{"runs": {}}', "is corrupt .KeyError: 'schema_version'"),
        ('{"schema_version": 1}', "is corrupt .runs: Field required"),
        ('{"schema_version": 1, "runs": {"run": {"scenario_hash": 3}}}', "is corrupt"),
        ('{"schema_version": 1, "runs": {}, "extra": 1}', "extra: Extra inputs"),
        ('{"schema_version": 2.0}', "has schema 2.0, newer than 1"),
        ('{"schema_version": "1", "runs": {}}', "is corrupt .schema_version"),
        ('{"schema_version": 99, "anything": 1}', "has schema 99, newer than 1: upgrade mindspore-harness"),
    ],
)
def test_a_broken_file_is_named_and_left_alone(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(BaselineError, match=message) as caught:
        baseline.read(path)
    assert str(tmp_path) not in str(caught.value)
    assert path.read_text() == text


@given(st.integers(0, 2000))
def test_a_file_cut_anywhere_is_refused_or_whole(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("b") / "x.json"
    baseline.write(path, CONTENT)
    text = path.read_text()
    path.write_text(text[:cut])
    if cut >= len(text) - 1:
        assert baseline.read(path) == CONTENT
    else:
        with pytest.raises(BaselineError):
            baseline.read(path)


@pytest.mark.parametrize(
    ("nodeid", "path"),
    [
        ("suites/training/test_loss.py::test_falls[cpu]", "cpu/training/test_loss/test_falls.json"),
        ("suites/training/test_loss.py::TestLoss::test_falls[cpu]", "cpu/training/test_loss/TestLoss.test_falls.json"),
        ("suites/a/test_x.py::test_y[tiny-cpu]", "cpu/a/test_x/test_y-tiny.json"),
        ("suites/a/test_x.py::test_y[cpu-a/../b]", "cpu/a/test_x/test_y-a_.._b-900ea8.json"),
        ("suites/a/test_x.py::test_y[-1-cpu]", "cpu/a/test_x/test_y--1.json"),
        ("suites/a/test_x.py::test_y[1-cpu]", "cpu/a/test_x/test_y-1.json"),
        ("checks/test_x.py::test_y[cpu]", "cpu/checks/test_x/test_y.json"),
    ],
)
def test_path_follows_the_test(nodeid, path):
    assert str(baseline_path(nodeid, "cpu")) == path


@pytest.mark.parametrize(
    "nodeid", ["../x/test_y.py::test_z[cpu]", "/etc/test_y.py::test_z[cpu]", "suites/a b/t.py::t[cpu]"]
)
def test_a_path_never_leaves_its_folder(nodeid):
    with pytest.raises(BaselineError, match="can't name a baseline file"):
        baseline_path(nodeid, "cpu")


@given(*[st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=6)] * 2)
def test_two_tests_never_share_a_file(one, other):
    assume(one != other)
    paths = {baseline_path(f"suites/a/t.py::t[{name}-cpu]", "cpu") for name in (one, other)}
    assert len(paths) == 2
