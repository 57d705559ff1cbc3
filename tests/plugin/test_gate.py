"""What the gate does to a test."""

import pytest
from junitparser import JUnitXml, Properties

from tests.plugin.sessions import approve, gated, results, suite
from tests.plugin.sessions import run_here as run


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


def test_an_expected_failure_passes_and_an_unexpected_pass_fails(project):
    gated(project)
    run(project)
    approve(project)
    (project.path / "pyproject.toml").write_text(
        "[[tool.harness.expected-failures]]\n"
        "test = 'test_gated[a'\nmetric = 'peak_memory'\nreason = 'a known leak'\nuntil = 9999-12-31\n"
    )
    found = run(project)
    found.assert_outcomes(passed=2, failed=1)
    found.stdout.fnmatch_lines(["XPASS*run.peak_memory*remove the entry"])
    gated(project, memory=200.0)
    found = run(project)
    found.assert_outcomes(passed=1, failed=2)
    found.stdout.fnmatch_lines(["run.peak_memory*XFAIL*test_gated?a-cpu?"])


class TestOrphans:
    @pytest.mark.parametrize("workers", [[], ["-n", "2"]])
    def test_a_baseline_whose_test_went_is_reported_and_fails_where_that_was_asked_for(self, project, workers):
        gated(project)
        run(project)
        approve(project)
        text = gated(project).read_text()
        suite(project, text.replace('["a", "b", "c"]', '["a", "b"]'))
        lines = ["harness: no test asks for baseline cpu/test_suite/test_gated-c.json (harness baseline prune*"]
        told = run(project, *workers)
        told.stdout.fnmatch_lines(lines)
        assert told.ret == 0
        strict = run(project, "--strict-baselines", *workers)
        strict.stdout.fnmatch_lines(lines)
        assert strict.ret == 1
        narrowed = run(project, "--strict-baselines", "-k", "a-", *workers)
        narrowed.assert_outcomes(passed=1, deselected=0 if workers else 1)
        narrowed.stdout.fnmatch_lines(lines)
        suite(project, text)
        healthy = run(project, "--strict-baselines", *workers)
        healthy.stdout.no_fnmatch_line("*no test asks for baseline*")
        assert healthy.ret == 0


@pytest.mark.parametrize(("arguments", "told"), [((), "NO_BASELINE"), (("-n", "1"), "INVALID")])
def test_a_benchmark_that_xdist_silenced_is_invalid(project, arguments, told):
    suite(
        project,
        "from harness import Scenario, hardware\n\n"
        "@hardware('cpu')\n"
        "def test_sorts(gate, benchmark):\n"
        "    benchmark.pedantic(sorted, args=([3, 1, 2],), rounds=5)\n"
        "    gate.check_benchmark(benchmark, Scenario())\n",
    )
    found = run(project, *arguments)
    found.stdout.fnmatch_lines([f"*benchmark.benchmark_time*{told}*"])
    found.assert_outcomes(failed=1 if told == "INVALID" else 0, passed=0 if told == "INVALID" else 1)
