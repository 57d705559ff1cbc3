from datetime import date, datetime

import pytest

from harness.errors import PolicyError
from harness.gate import Status, Verdict
from harness.gate.expected import Expected, apply

NODE = "suites/graph/test_cache.py::test_second_process[cpu]"
ENTRY = Expected("test_cache.py::test_second", "loss", "the cache is broken", date(2027, 6, 30))
BEFORE, LAST, AFTER = date(2027, 1, 1), date(2027, 6, 30), date(2027, 7, 1)


def judged(status, today=BEFORE, metric="loss", node=NODE, entry=ENTRY):
    return apply(Verdict(metric=metric, status=status, reason="why"), node, [entry], today)


@pytest.mark.parametrize("status", [Status.REGRESSED, Status.INVALID, Status.ENVIRONMENT_CHANGED])
def test_a_failure_is_accepted_until_its_day(status):
    for today in (BEFORE, LAST):
        verdict = judged(status, today)
        assert verdict.status is Status.XFAIL
        assert not verdict.fails
        assert verdict.reason == f"expected until 2027-06-30: the cache is broken ({status.value}: why)"
    late = judged(status, AFTER)
    assert late.status is status
    assert late.fails
    assert "accepted until 2027-06-30 (the cache is broken), which has passed" in late.reason


@pytest.mark.parametrize("status", [Status.PASS, Status.IMPROVED])
@pytest.mark.parametrize("today", [BEFORE, AFTER])
def test_a_pass_that_was_not_expected_fails(status, today):
    verdict = judged(status, today)
    assert verdict.status is Status.XPASS
    assert verdict.fails
    assert "remove the entry" in verdict.reason


def test_only_its_metric_and_its_test_are_meant():
    assert judged(Status.REGRESSED, metric="grad_norm").status is Status.REGRESSED
    assert judged(Status.REGRESSED, node="suites/graph/test_other.py::test_x[cpu]").status is Status.REGRESSED
    assert judged(Status.NO_BASELINE).status is Status.NO_BASELINE


def test_a_glob_may_name_many_tests():
    entry = Expected("suites/graph/*", "loss", "why", LAST)
    assert judged(Status.REGRESSED, entry=entry).status is Status.XFAIL


GOOD = {"test": "test_x", "metric": "loss", "reason": "why", "until": LAST}


def test_an_entry_is_read():
    assert Expected.from_dict(GOOD) == Expected("test_x", "loss", "why", LAST)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"until": "2027-06-30"}, "until must be a date like 2027-01-31, not '2027-06-30'"),
        ({"until": datetime(2027, 6, 30)}, "until must be a date"),
        ({"reason": " "}, "reason must be a text"),
        ({"metric": "losss"}, "did you mean 'loss'"),
        ({"because": "x"}, "has the fields test, metric, reason, until, not"),
    ],
)
def test_an_entry_that_cannot_be_applied_is_refused(changes, message):
    with pytest.raises(PolicyError, match=message):
        Expected.from_dict({**GOOD, **changes})
    with pytest.raises(PolicyError, match="not none"):
        Expected.from_dict({})
