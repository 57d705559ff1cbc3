"""The plugin in pytest sessions of its own."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from junitparser import JUnitXml, Properties

from harness.results import read

ROOT = Path(__file__).parents[1]

GATED = """
import pytest
from harness import cards, hardware
from tests.gate.builders import make_run

@hardware("cpu")
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_gated(gate, name):
    curves = {"loss": [3.0, 2.5, {last}]}
    gate.check(make_run(peak_memory={memory}, throughput=1000.0, curves=curves))
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.fixture
def project(pytester):
    """A project with a suite, in a folder of its own."""
    pytester.makeini("[pytest]\n")
    pytester.mkdir("suites")
    return pytester


def suite(project, text, name="test_suite.py"):
    path = project.path / "suites" / name
    path.write_text(text)
    return path


def gated(project, memory=100.0, last=2.0):
    return suite(project, GATED.replace("{memory}", str(memory)).replace("{last}", str(last)))


def run(project, *arguments):
    return project.runpytest_subprocess("-p", "no:cacheprovider", *arguments, "suites")


def approve(project, *arguments):
    command = [
        sys.executable,
        "-m",
        "harness.cli",
        "baseline",
        "approve",
        "--reason",
        "first",
        "--by",
        "Ada",
        *arguments,
    ]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(project):
    return read(project.path / ".harness" / "latest")


def comparable(found):
    """Results without what differs between any two sessions."""
    content = json.loads(found.model_dump_json(exclude={"started"}))
    for test in content["tests"]:
        for attempt in test["attempts"]:
            attempt.pop("seconds")
    return content


MARKED = """
from harness import cards, hardware

@hardware("cpu", "gpu", "ascend")
def test_runs(trainer):
    pass

@hardware("cpu", "ascend")
@cards(1000)
def test_is_large(trainer):
    pass
"""


class TestHardware:
    def test_one_instance_a_hardware_each_with_only_its_mark(self, project):
        suite(project, MARKED)
        listed = {name: run(project, "-m", name, "--collect-only", "-q").outlines for name in ("cpu", "gpu", "ascend")}
        for name, lines in listed.items():
            ids = [line for line in lines if "::" in line]
            assert ids
            assert all(line.endswith(f"[{name}]") for line in ids)

    @pytest.mark.parametrize("name", ["ascend", "gpu"])
    def test_missing_hardware_skips_with_a_reason_or_fails(self, project, name):
        suite(project, MARKED)
        skipped = run(project, "-m", name, "-rs")
        skipped.assert_outcomes(skipped=2 if name == "ascend" else 1, deselected=3 if name == "ascend" else 4)
        assert skipped.ret == 0
        skipped.stdout.fnmatch_lines([f"SKIPPED*no {name} on this machine: *"])
        required = run(project, "-m", name, "--require-hardware")
        assert required.ret == 1
        assert required.parseoutcomes()["errors"] == (2 if name == "ascend" else 1)
        required.stdout.fnmatch_lines([f"*no {name} on this machine*(--require-hardware)*"])

    def test_too_few_devices_skip_with_the_reason(self, project):
        suite(project, MARKED)
        skipped = run(project, "-m", "cpu", "-rs")
        skipped.assert_outcomes(passed=1, skipped=1, deselected=3)
        skipped.stdout.fnmatch_lines(["SKIPPED*needs 1000 cpu devices, found *"])

    def test_an_unknown_name_is_a_usage_error(self, project):
        suite(project, "from harness import hardware\n\n@hardware('ascent')\ndef test_x(trainer): pass\n")
        found = run(project)
        assert found.ret == 2
        found.stdout.fnmatch_lines(["test_suite.py:3: error: hardware 'ascent' is unknown; choose from *'ascend'?"])

    def test_a_test_without_hardware_is_told(self, project):
        suite(project, "def test_x(trainer): pass\n")
        found = run(project)
        found.stdout.fnmatch_lines(["*test_x names no hardware; decorate it with @hardware*"])
        assert found.ret == 1


class TestGate:
    def test_new_values_fail_are_approved_and_pass(self, project):
        gated(project)
        first = run(project)
        first.assert_outcomes(failed=3)
        first.stdout.fnmatch_lines(["*NO_BASELINE*", "times were measured but not judged*harness baseline approve*"])
        assert "approved baselines/cpu/test_suite/test_gated-a.json" in approve(project)
        second = run(project)
        second.assert_outcomes(passed=3)
        second.stdout.fnmatch_lines(["9 values of 3 tests: 9 PASS"])

    def test_a_regression_fails_its_test_once_with_every_metric(self, project):
        gated(project)
        run(project)
        approve(project)
        gated(project, memory=200.0, last="float('nan')")
        found = run(project, "--junitxml=junit.xml", "-k", "test_gated and a-")
        found.assert_outcomes(failed=1, deselected=2)
        found.stdout.fnmatch_lines(
            [
                "2 value(s) fell short of the baseline:",
                "INVALID*run.loss: non-finite (nan) at step 3",
                "REGRESSED*run.peak_memory: 100 → 200 MiB (+100.00 %)*",
            ]
        )
        case = next(iter(next(iter(JUnitXml.fromfile(str(project.path / "junit.xml"))))))
        properties = {p.name: p.value for p in case.child(Properties)}
        assert properties["run.peak_memory"] == "REGRESSED: 100 → 200 MiB"
        assert properties["run.throughput"].startswith("PASS")
        assert "REGRESSED" in case.result[0].text
        attempt = results(project).tests[0].last
        assert attempt.outcome == "failed"
        assert sorted(v.status.value for v in attempt.verdicts) == ["INVALID", "PASS", "REGRESSED"]

    def test_the_worst_comes_first_in_the_table(self, project):
        gated(project)
        run(project)
        approve(project)
        gated(project, memory=120.0)
        lines = run(project, "-v").outlines
        table = lines[next(i for i, line in enumerate(lines) if line.startswith("metric")) + 1 :]
        assert "REGRESSED" in table[0]
        assert "+20.00 %" in table[0]
        assert "PASS" in table[5]

    def test_a_skip_does_not_hide_a_regression(self, project):
        text = gated(project).read_text()
        suite(project, text + "    pytest.skip('later')\n")
        run(project).assert_outcomes(failed=3)

    def test_a_gate_that_is_asked_for_by_name_is_heard(self, project):
        text = gated(project).read_text().replace("(gate, name)", "(request, name)")
        suite(project, text.replace("    curves", "    gate = request.getfixturevalue('gate')\n    curves"))
        run(project).assert_outcomes(failed=3)

    def test_a_label_that_went_is_told_and_approved_away(self, project):
        text = gated(project).read_text()
        suite(project, text + "    gate.check(make_run(peak_memory=1.0), label='second')\n")
        run(project)
        approve(project)
        gated(project)
        found = run(project)
        found.assert_outcomes(failed=3)
        found.stdout.fnmatch_lines(["INVALID*second.run: the baseline holds a run of this label*"])
        approve(project)
        run(project).assert_outcomes(passed=3)

    def test_a_gate_that_checks_nothing_fails(self, project):
        suite(project, "from harness import hardware\n\n@hardware('cpu')\ndef test_x(gate): pass\n")
        found = run(project)
        assert found.ret == 1
        found.stdout.fnmatch_lines(["*checked nothing: call gate.check(run)*"])

    def test_a_failing_claim_leaves_no_candidate_but_shows_the_gate(self, project):
        text = gated(project).read_text()
        suite(project, text + "    assert False, 'the claim'\n")
        found = run(project)
        found.assert_outcomes(failed=3)
        found.stdout.fnmatch_lines(["*the claim*", "*fell short of the baseline*"])
        assert not (project.path / ".harness/latest/candidates").exists()

    def test_advisory_times_are_shown_and_do_not_fail(self, project):
        gated(project)
        run(project)
        approve(project)
        text = gated(project).read_text().replace("throughput=1000.0", "throughput=100.0")
        suite(project, text)
        assert run(project).ret == 1
        (project.path / "pyproject.toml").write_text('[tool.harness.policy.machine]\nlane = "advisory"\n')
        found = run(project)
        found.assert_outcomes(passed=3)
        found.stdout.fnmatch_lines(["*run.throughput*-90.00 %*REGRESSED (advisory)*"])

    def test_another_scenario_is_refused(self, project):
        gated(project)
        run(project)
        approve(project)
        text = gated(project).read_text().replace("make_run(", "make_run(Scenario(steps=9), ")
        suite(project, text.replace("from harness import", "from harness import Scenario,"))
        run(project).stdout.fnmatch_lines(["*INVALID*run.scenario: wrong scenario*steps: 20 → 9*"])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "*baseline test_gated-a.json is corrupt (it is empty)*"),
            ('{"schema_version": 9}', "*has schema 9, newer*"),
        ],
    )
    def test_a_broken_baseline_is_an_error_of_its_test_alone(self, project, text, message):
        gated(project)
        run(project)
        approve(project)
        (project.path / "baselines/cpu/test_suite/test_gated-a.json").write_text(text)
        found = run(project)
        found.assert_outcomes(passed=2, errors=1)
        found.stdout.fnmatch_lines([message])


class TestResults:
    def test_serial_and_two_workers_agree(self, project):
        gated(project)
        serial = run(project)
        one = comparable(results(project))
        approve(project)
        parallel = run(project, "-n", "2")
        serial.assert_outcomes(failed=3)
        parallel.assert_outcomes(passed=3)
        two = comparable(results(project))
        run(project)
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
        run(project)
        approve(project)
        text = gated(project).read_text()
        suite(project, "import pathlib\n" + text.replace("peak_memory=100.0", "peak_memory=memory(name)") + FLAKY)
        run(project).stdout.fnmatch_lines(["flaky, passed only when run again: *test_gated?a-cpu?*"])
        test = results(project).tests[0]
        assert [a.outcome for a in test.attempts] == ["failed", "passed"]
        assert test.flaky
        assert "REGRESSED" in {v.status.value for v in test.attempts[0].verdicts}

    def test_an_unwritable_folder_is_refused_before_anything_runs(self, project):
        suite(project, "from harness import hardware\n\n@hardware('cpu')\ndef test_x(trainer): pass\n")
        (project.path / "file").write_text("")
        found = run(project, "--results", "file/results")
        assert found.ret == 4
        found.stderr.fnmatch_lines(["*can't be made: Not a directory; name a writable one with --results"])

    def test_an_unwritable_folder_is_told_by_workers_too(self, project):
        head = "from harness import Scenario, hardware\n\n@hardware('cpu')\ndef test_x(trainer):\n"
        suite(project, head + "    trainer.run(Scenario())\n")
        (project.path / "file").write_text("")
        found = run(project, "--results", "file/results", "-n", "2")
        found.assert_outcomes(failed=1)
        found.stdout.fnmatch_lines(["test_suite.py:5: error: results folder *can't be made: Not a directory; name *"])

    def test_a_lone_surrogate_does_not_end_the_session(self, project):
        body = "def test_x(trainer):\n    raise ValueError('\\udcff')\n"
        suite(project, f"from harness import hardware\n\n@hardware('cpu')\n{body}")
        run(project, "--tb=no", "-rN").assert_outcomes(failed=1)
        assert results(project).tests[0].last.message == "ValueError: ?"

    def test_a_session_of_skips_has_results(self, project):
        suite(project, MARKED)
        run(project, "-m", "ascend")
        assert {test.last.outcome for test in results(project).tests} == {"skipped"}
        assert "no ascend on this machine" in results(project).tests[0].last.message

    def test_a_crashed_worker_is_in_the_results(self, project):
        body = "def test_x(trainer): os._exit(3)\n"
        suite(project, f"import os\nfrom harness import hardware\n\n@hardware('cpu')\n{body}")
        run(project, "-n", "1", "--max-worker-restart", "0")
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
        run(project, "--junitxml=junit.xml")
        case = next(iter(next(iter(JUnitXml.fromfile(str(project.path / "junit.xml"))))))
        assert "b" in case.result[0].message

    def test_reports_name_no_path_of_this_machine(self, project):
        gated(project)
        run(project)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--plant", "slow"], "*fault 'slow' is unknown*"), (["--plant", "nan=x"], "*'x' is no positive number*")],
)
def test_a_bad_option_is_a_usage_error(project, arguments, message):
    gated(project)
    found = run(project, *arguments)
    assert found.ret == 4
    found.stderr.fnmatch_lines([message])


def test_a_bad_policy_in_the_configuration_is_a_usage_error(project):
    gated(project)
    (project.path / "pyproject.toml").write_text("[tool.harness.policy.losss]\nrelative = 1\n")
    found = run(project)
    assert found.ret == 4
    found.stderr.fnmatch_lines(["*[[]tool.harness.policy[]] in pyproject.toml: metric 'losss' is unknown*"])


def test_collecting_the_suites_imports_no_mindspore():
    script = (
        "import sys, pytest\n"
        "code = pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider', 'suites'])\n"
        "assert not [n for n in sys.modules if n.split('.')[0] == 'mindspore']\n"
        "sys.exit(code)\n"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[cpu]" in done.stdout
    assert time.perf_counter() - start < 30


TRAINED = """
import pytest
from harness import Scenario, hardware

SCENARIO = Scenario(model="nano", steps=4, batch=4, sequence=16, eval_sequences=8)

@hardware("cpu")
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_trains(trainer, gate, name):
    gate.check(trainer.run(SCENARIO), only=["loss", "validation_perplexity"])
"""


def test_workers_share_one_real_run(project):
    suite(project, TRAINED)
    run(project, "-n", "4")
    folders = [path for path in (project.path / ".harness/latest/runs").iterdir() if path.is_dir()]
    assert len(folders) == 1
    assert len(results(project).runs) == 1
    approve(project)
    serial = run(project, "-p", "no:xdist")
    serial.assert_outcomes(passed=4)
    assert len([path for path in (project.path / ".harness/latest/runs").iterdir() if path.is_dir()]) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("data='text:none.txt'", "*data='text:none.txt' can't be read: No such file or directory*"),
        ("layout=Layout(tp=2)", "*layout.tp=2: this trainer is data parallel only*"),
        ("batch=64, layout=Layout(dp=64)", "*the scenario needs 64 ranks, cpu offers*mark the test with @cards(64)*"),
        ("model='missing.module:model'", "*error: model='missing.module:model' can't be loaded: No module named*"),
        ("steps=0", "test_suite.py:4: error: steps must be a whole number of at least 1, not 0"),
    ],
)
def test_bad_input_is_named(project, fields, message):
    suite(
        project,
        "from harness import Layout, Scenario, hardware\n\n@hardware('cpu')\n"
        f"def test_x(trainer): trainer.run(Scenario({fields}))\n",
    )
    found = run(project)
    found.stdout.fnmatch_lines([message])
    assert found.ret == 1
    assert "harness/session.py" not in found.stdout.str()


def test_a_run_that_was_too_slow_may_be_given_more_time(project):
    suite(
        project,
        "import pytest\nfrom harness import Scenario, hardware\nfrom harness.errors import LaunchError\n\n"
        "@hardware('cpu')\ndef test_x(trainer):\n"
        "    scenario = Scenario(model='nano', steps=3, batch=2, sequence=16, eval_sequences=0)\n"
        "    for _ in range(2):\n"
        "        with pytest.raises(LaunchError, match='the deadline of 0.5 s passed'):\n"
        "            trainer.run(scenario, deadline=0.5)\n"
        "    assert len(trainer.run(scenario).curve('loss')) == 3\n",
    )
    run(project).assert_outcomes(passed=1)


def test_a_model_of_the_users_own_is_trained(project):
    (project.path / "own.py").write_text(
        "from harness.models import ModelConfig\nfrom harness.trainer.model import Decoder\n"
        "def model(scenario):\n"
        "    config = ModelConfig(layers=1, width=8, heads=2, feed_forward=8)\n"
        "    return Decoder(config, scenario.sequence, scenario.seed)\n"
    )
    suite(
        project,
        "from harness import Scenario, hardware\n\n@hardware('cpu')\ndef test_x(trainer):\n"
        "    run = trainer.run(Scenario(model='own:model', steps=3, batch=2, sequence=16, eval_sequences=4))\n"
        "    assert run['parameters'] == 2 * 256 * 8 + 4 * 64 + 3 * 64 + 2 * 8 + 8\n",
    )
    run(project).assert_outcomes(passed=1)
