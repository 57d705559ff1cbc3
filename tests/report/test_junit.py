import xml.etree.ElementTree as ElementTree

import pytest
from junitparser import JUnitXml
from typer.testing import CliRunner

from harness.cli import app
from harness.errors import ResultsError
from harness.report.junit import merge


def shard(path, tests, seconds, failures=0, root="testsuites"):
    cases = "".join(
        f'<testcase classname="c" name="t{i}" time="{seconds / tests:.6f}">'
        + ("<failure message='bad'/>" if i < failures else "")
        + "<properties><property name='run.loss' value='PASS'/></properties></testcase>"
        for i in range(tests)
    )
    counts = f'tests="{tests}" failures="{failures}" errors="0" time="{seconds}"'
    suite = f'<testsuite name="pytest" {counts}>{cases}</testsuite>'
    path.write_text(f"<testsuites>{suite}</testsuites>" if root == "testsuites" else suite)
    return path


def test_two_shards_add_up(tmp_path):
    """16 tests in 43.390 s and 14 in 15.434 s are 30 in 58.824 s."""
    parts = [shard(tmp_path / "cpu.xml", 16, 43.390, failures=2), shard(tmp_path / "ascend.xml", 14, 15.434)]
    merge(parts, tmp_path / "all.xml")
    found = JUnitXml.fromfile(str(tmp_path / "all.xml"))
    assert (found.tests, found.failures) == (30, 2)
    assert found.time == pytest.approx(58.824, abs=1e-3)
    assert [suite.name for suite in found] == ["pytest (cpu)", "pytest (ascend)"]
    assert "run.loss" in (tmp_path / "all.xml").read_text()


def test_files_of_the_same_name_are_not_mixed(tmp_path):
    """Each job leaves its own junit.xml; whoever reads the file without counting cases goes by its attributes."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    parts = [shard(tmp_path / "one" / "junit.xml", 16, 4.0), shard(tmp_path / "two" / "junit.xml", 14, 2.0, failures=1)]
    merge(parts, tmp_path / "all.xml")
    root = ElementTree.parse(tmp_path / "all.xml").getroot()
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "30",
        "failures": "1",
        "errors": "0",
    }
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [
        ("pytest (one/junit)", "16"),
        ("pytest (two/junit)", "14"),
    ]
    assert len(list(root.iter("testcase"))) == 30


def test_a_bare_suite_is_one_too(tmp_path):
    merge([shard(tmp_path / "a.xml", 3, 1.0, root="testsuite")], tmp_path / "all.xml")
    assert JUnitXml.fromfile(str(tmp_path / "all.xml")).tests == 3


@pytest.mark.parametrize("damage", ["", "<testsuites><testsuite name='x'>", "no xml", "<other/>"])
def test_a_file_that_was_cut_is_named_and_the_others_are_merged(tmp_path, damage):
    (tmp_path / "cut.xml").write_text(damage)
    with pytest.raises(ResultsError, match=r"1 of 2 files merged; cut\.xml is no whole JUnit file"):
        merge([tmp_path / "cut.xml", shard(tmp_path / "a.xml", 3, 1.0)], tmp_path / "all.xml")
    assert JUnitXml.fromfile(str(tmp_path / "all.xml")).tests == 3


def test_nothing_to_merge_leaves_the_old_file(tmp_path):
    (tmp_path / "all.xml").write_text("old")
    with pytest.raises(ResultsError, match=r"0 of 1 files merged; none\.xml: No such file"):
        merge([tmp_path / "none.xml"], tmp_path / "all.xml")
    assert (tmp_path / "all.xml").read_text() == "old"


def test_the_command_says_what_it_merged(tmp_path):
    parts = [shard(tmp_path / "a.xml", 2, 1.0, failures=1), shard(tmp_path / "b.xml", 3, 2.0)]
    done = CliRunner().invoke(app, ["report", "junit", *map(str, parts), "--merge", str(tmp_path / "all.xml")])
    assert done.exit_code == 0
    assert "5 tests, 1 failures, 0 errors, 0 skipped, 3.000 s" in done.output
