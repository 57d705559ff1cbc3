"""Sessions made by hand, for tests of what shows them."""

from harness.gate.verdict import Status, Verdict
from harness.results import Attempt, Results, TestResult

NASTY = "<img src=x onerror=alert(1)> | `code` @everyone #1 [a](http://b) **bold**\n# title $x$"


def verdict(status=Status.REGRESSED, metric="loss", **fields):
    return Verdict(metric=metric, status=status, **{"label": "run", "value": 2.0, "baseline": 1.0, **fields})


def result(name, outcome="failed", verdicts=(), message="", hardware="cpu", runs=()):
    attempt = Attempt(outcome=outcome, verdicts=list(verdicts), message=message, runs=list(runs))
    return TestResult(nodeid=f"suites/test_x.py::{name}", hardware=hardware, baseline="", attempts=[attempt])


def session(*tests, **fields):
    return Results(started="2026-01-01T00:00:00Z", harness="0.1.0", tests=list(tests), **fields)
