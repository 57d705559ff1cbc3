"""What a session leaves behind."""

import sys

import xmlschema
from junitparser import JUnitXml

from harness.report.junit import merge
from tests.plugin.sessions import MARKED, ROOT, approve, comparable, gated, results, run, run_here, suite


class TestResults:
    def test_serial_and_two_workers_agree(self, project):
        gated(project)
        serial = run_here(project)
        one = comparable(results(project))
        approve(project)
        parallel = run_here(project, "-n", "2")
        serial.assert_outcomes(failed=3)
        parallel.assert_outcomes(passed=3)
        two = comparable(results(project))
        run_here(project)
        assert comparable(results(project)) == two != one

    def test_a_rerun_is_one_test_marked_flaky(self, project):
        project.makeconftest(
            "from _pytest.runner import runtestprotocol\n"
            "def pytest_runtest_protocol(item, nextitem):\n"
            "    for _ in range(2):\n"
            "        for report in runtestprotocol(item, nextitem=nextitem, log=False):\n"
            "            item.ihook.pytest_runtest_logreport(report=report)\n"
            "    return True\n"
        )
        gated(project)
        run_here(project)
        approve(project)
        text = gated(project).read_text()
        suite(project, "import pathlib\n" + text.replace("peak_memory=100.0", "peak_memory=memory(name)") + FLAKY)
        run_here(project).stdout.fnmatch_lines(["flaky, passed only when run again: *test_gated?a-cpu?*"])
        test = results(project).tests[0]
        assert [a.outcome for a in test.attempts] == ["failed", "passed"]
        assert test.flaky
        assert "REGRESSED" in {v.status.value for v in test.attempts[0].verdicts}

    def test_an_unwritable_folder_is_refused_before_anything_runs(self, project):
        suite(project, "from harness import hardware\n\n@hardware('cpu')\ndef test_x(trainer): pass\n")
        (project.path / "file").write_text("")
        found = run_here(project, "--results", "file/results")
        assert found.ret == 4
        found.stderr.fnmatch_lines(["*can't be made: Not a directory; name a writable one with --results"])

    def test_an_unwritable_folder_is_told_by_workers_too(self, project):
        head = "from harness import Scenario, hardware\n\n@hardware('cpu')\ndef test_x(trainer):\n"
        suite(project, head + "    trainer.run(Scenario())\n")
        (project.path / "file").write_text("")
        found = run_here(project, "--results", "file/results", "-n", "2")
        found.assert_outcomes(failed=1)
        found.stdout.fnmatch_lines(["test_suite.py:5: error: results folder *can't be made: Not a directory; name *"])

    def test_a_lone_surrogate_does_not_end_the_session(self, project):
        body = "def test_x(trainer):\n    raise ValueError('\\udcff')\n"
        suite(project, f"from harness import hardware\n\n@hardware('cpu')\n{body}")
        run_here(project, "--tb=no", "-rN").assert_outcomes(failed=1)
        assert results(project).tests[0].last.message == "ValueError: ?"

    def test_a_session_of_skips_has_results(self, project):
        suite(project, MARKED)
        run_here(project, "-m", "ascend")
        assert {test.last.outcome for test in results(project).tests} == {"skipped"}
        assert "no ascend on this machine" in results(project).tests[0].last.message

    def test_a_crashed_worker_is_in_the_results(self, project):
        body = "def test_x(trainer): os._exit(3)\n"
        suite(project, f"import os\nfrom harness import hardware\n\n@hardware('cpu')\n{body}")
        run_here(project, "-n", "1", "--max-worker-restart", "0")
        assert [test.last.outcome for test in results(project).tests] == ["error"]

    def test_a_full_disk_is_told_and_the_session_is_not_green(self, project):
        gated(project)
        run(project)
        approve(project)
        project.makeconftest(
            "import harness.files\n"
            "def full(handle): raise OSError(28, 'No space left on device')\n"
            "def pytest_runtest_logfinish(): harness.files.os.fsync = full\n"
        )
        found = run(project)
        found.stdout.fnmatch_lines(["harness: */results.json can't be written: No space left on device; free*"])
        assert found.ret != 0
        assert results(project).tests

    def test_control_characters_keep_the_junit_file_readable(self, project):
        body = "def test_x(trainer):\n    raise ValueError('a\\x01b\\x1bc')\n"
        suite(project, f"from harness import hardware\n\n@hardware('cpu')\n{body}")
        run_here(project, "--junitxml=junit.xml")
        case = next(iter(next(iter(JUnitXml.fromfile(str(project.path / "junit.xml"))))))
        assert "b" in case.result[0].message

    def test_reports_name_no_path_of_this_machine(self, project):
        gated(project)
        run_here(project)
        approve(project)
        kept = (project.path / ".harness/latest/results.json").read_text()
        kept += (project.path / "baselines/cpu/test_suite/test_gated-a.json").read_text()
        assert str(project.path) not in kept
        assert str(ROOT) not in kept


FLAKY = """

def memory(name):
    seen = pathlib.Path(__file__).with_name(f"seen-{name}")
    again = seen.exists()
    seen.write_text("")
    return 100.0 if again else 300.0
"""


class TestElsewhere:
    def test_a_github_job_gets_a_summary_and_old_ones_stay(self, project, monkeypatch):
        place = project.path / "summary.md"
        place.write_text("what an earlier step said\n")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
        gated(project)
        run_here(project, "-n", "2")
        text = place.read_text()
        assert text.startswith("what an earlier step said\n## ❌ 3 of 3 tests failed; ")
        assert text.count("## ❌") == 1
        assert "| **NO_BASELINE** | run.peak&#95;memory |" in text

    def test_a_summary_that_cannot_be_written_is_told_and_changes_nothing_else(self, project, monkeypatch):
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "none" / "summary.md"))
        gated(project)
        found = run_here(project)
        found.stdout.fnmatch_lines(["harness: GITHUB_STEP_SUMMARY can't be written: No such file or directory"])
        assert len(results(project).tests) == 3

    def test_control_characters_leave_the_junit_file_whole(self, project):
        body = "def test_x(trainer):\n    raise ValueError('a \\x01 b \\x1b[31m c')\n"
        suite(project, f"from harness import hardware\n\n@hardware('cpu')\n{body}")
        run_here(project, "--junitxml=junit.xml").assert_outcomes(failed=1)
        assert JUnitXml.fromfile(str(project.path / "junit.xml")).failures == 1


class TestPage:
    def test_it_lies_beside_the_results_and_is_named(self, project):
        gated(project)
        found = run_here(project)
        found.stdout.fnmatch_lines(["as a page: .harness/latest/report.html"])
        page = (project.path / ".harness/latest/report.html").read_text(encoding="utf-8")
        assert "3 of 3 tests failed; 9 values judged: 6 NO_BASELINE" in page

    def test_a_damaged_history_costs_the_trends_alone(self, project):
        gated(project)
        (project.path / ".harness").mkdir()
        (project.path / ".harness/history.sqlite").write_text("no database")
        found = run_here(project)
        found.stdout.fnmatch_lines(["harness: report.html shows no trends: history history.sqlite: *"])
        assert (project.path / ".harness/latest/report.html").exists()

    def test_a_page_that_can_not_be_written_costs_itself_alone(self, project):
        gated(project)
        project.makeconftest(
            "import pathlib\n"
            "def pytest_runtest_logreport(report):\n"
            "    for folder in pathlib.Path('.harness/runs').glob('*'):\n"
            "        (folder / 'report.html').mkdir(exist_ok=True)\n"
        )
        found = run_here(project, "--junitxml", "all.xml")
        found.assert_outcomes(failed=3)
        found.stdout.fnmatch_lines(["harness: report.html was not written: *report.html can't be written: *"])
        assert len(results(project).tests) == 3
        assert JUnitXml.fromfile(str(project.path / "all.xml")).tests == 3

    def test_it_is_written_anew_by_the_command(self, project):
        gated(project)
        run_here(project)
        page = project.path / ".harness/latest/report.html"
        page.unlink()
        command = [sys.executable, "-m", "harness.cli", "report", "html"]
        assert project.run(*command).outlines == [".harness/latest/report.html"]
        assert page.exists()
        found = project.run(*command, "--output", "suites/test_suite.py/x.html")
        assert found.ret == 2
        found.stderr.fnmatch_lines(["error: test_suite.py/x.html can't be written: *"])


def test_junit_files_keep_to_the_schema_and_merged_ones_name_no_host(project):
    schema = xmlschema.XMLSchema(ROOT / "tests" / "report" / "junit.xsd")
    text = gated(project).read_text().replace('"a", "b", "c"', '"a", "b\\x1b<&"')
    suite(project, text + "\n@hardware('gpu')\ndef test_skips(trainer): pass\n")
    for name in ("one", "two"):
        run_here(project, "--junitxml", f"{name}.xml")
        schema.validate(str(project.path / f"{name}.xml"))
    merge([project.path / "one.xml", project.path / "two.xml"], project.path / "all.xml")
    schema.validate(str(project.path / "all.xml"))
    merged = (project.path / "all.xml").read_text()
    assert 'name="run.loss" value="NO_BASELINE' in merged
    assert "hostname" not in merged
    (project.path / "bad.xml").write_text(merged.replace("<testcase ", "<testcase tests='x' ", 1))
    assert not schema.is_valid(str(project.path / "bad.xml"))
