from harness.gate import Status, Verdict
from harness.report.terminal import failure_text, session_summary, shortened
from harness.results import Attempt, Results, TestResult


def results(verdicts, flaky=False):
    attempts = [Attempt(outcome="failed", verdicts=verdicts)]
    test = TestResult(
        nodeid="suites/a.py::test_[b]old[cpu]", hardware="cpu", baseline="x", attempts=attempts, flaky=flaky
    )
    return Results(started="now", harness="0", tests=[test])


def verdict(metric, status, value=110.0, baseline=100.0, **fields):
    return Verdict(metric=metric, label="run", status=status, value=value, baseline=baseline, unit="MiB", **fields)


VERDICTS = [
    verdict("loss", Status.PASS),
    verdict("grad_norm", Status.REGRESSED, value=103.0, step=7),
    verdict("peak_memory", Status.REGRESSED, value=150.0),
    verdict("distinct_1", Status.INVALID, value=None),
    verdict("throughput", Status.NO_BASELINE, baseline=None, scope="machine"),
    verdict("step_time", Status.REGRESSED, lane="advisory"),
    verdict("repetition", Status.IMPROVED),
]


def test_worst_first_then_largest_change():
    lines = session_summary(results(VERDICTS), width=120, color=False, verbose=True).splitlines()
    assert [line.split()[0] for line in lines[1:8]] == [
        "run.distinct_1",
        "run.peak_memory",
        "run.grad_norm",
        "run.step_time",
        "run.throughput",
        "run.repetition",
        "run.loss",
    ]
    assert lines[3].split()[:2] == ["run.grad_norm", "@7"]
    assert "+50.00 %" in lines[2]
    assert "test_[b]old[cpu]" in lines[2]
    assert lines[8] == "7 values of 1 tests: 3 REGRESSED, 1 INVALID, 1 NO_BASELINE, 1 IMPROVED, 1 PASS"


def test_advice_follows_from_the_verdicts():
    text = session_summary(results(VERDICTS, flaky=True), width=120, color=False, verbose=False)
    assert "times were measured but not judged" in text
    assert "some values improved" in text
    assert "flaky, passed only when run again" in text
    quiet = session_summary(results(VERDICTS[:1]), width=120, color=False, verbose=False)
    assert "approve" not in quiet


def test_long_tables_are_cut_but_say_so():
    many = [verdict(f"m{i}", Status.PASS) for i in range(50)]
    text = session_summary(results(many), width=120, color=False, verbose=False)
    assert "… and 20 more, none worse (-v shows all)" in text
    assert "m49" in session_summary(results(many), width=120, color=False, verbose=True)


def test_failure_text_is_one_line_a_metric():
    text = failure_text(
        [verdict("loss", Status.REGRESSED, reason="beyond"), verdict("x", Status.INVALID, None, reason="missing")]
    )
    assert text.splitlines() == [
        "2 value(s) fell short of the baseline:",
        "REGRESSED            run.loss: 100 → 110 MiB (+10.00 %): beyond",
        "INVALID              run.x: missing",
    ]


def test_a_long_name_keeps_its_ends():
    assert shortened("a" * 40 + "[cpu]", 20) == "a" * 12 + "…aa[cpu]"
