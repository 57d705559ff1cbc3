import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate.verdict import Status
from harness.report.markdown import LIMIT, markdown, plain
from harness.results import Attempt
from tests.report.making import NASTY, result, session, verdict


def test_the_first_line_is_the_verdict():
    healthy = session(result("test_a[cpu]", "passed", [verdict(Status.PASS)]), result("test_b[cpu]", "skipped"))
    assert markdown(healthy).startswith("## ✅ 1 tests passed, 1 skipped; 1 values judged\n")
    bad = session(result("test_a[cpu]", verdicts=[verdict(), verdict(Status.INVALID, "grad_norm")]))
    assert markdown(bad).startswith("## ❌ 1 of 1 tests failed; 2 values judged: 1 INVALID, 1 REGRESSED\n")


def test_worst_comes_first_and_what_passed_is_no_row():
    rows = [verdict(Status.IMPROVED, "throughput"), verdict(Status.PASS, "perplexity"), verdict(step=7)]
    text = markdown(session(result("test_a[cpu]", verdicts=rows)))
    table = [line for line in text.splitlines() if line.startswith("| ") and "verdict" not in line]
    assert table[0].startswith("| **REGRESSED** | run.loss @7 | 1 | 2 | +100.00 % | test&#95;a&#91;cpu&#93; |")
    assert table[1].startswith("| IMPROVED | run.throughput |")
    assert len(table) == 2
    assert "run.perplexity" not in text


def test_details_are_folded_and_hold_reason_and_message():
    text = markdown(session(result("test_a[cpu]", verdicts=[verdict(reason="far away")], message="line one\nline two")))
    details = text[text.index("<details>") :]
    assert "- **REGRESSED** run.loss: far away" in details
    assert "\n    line one\n    line two\n" in details
    assert details.count("<details>") == details.count("</details>") == 1


def test_what_comes_from_runs_is_never_markup():
    text = markdown(session(result(NASTY, verdicts=[verdict(reason=NASTY)], message=NASTY)))
    assert "<img" not in "".join(line for line in text.splitlines() if not line.startswith("    "))
    outside = [line for line in text.splitlines() if not line.startswith("    ")]
    assert not any(re.search(r"@everyone|\[a\]|\*\*bold|(^|\s)#1", line) for line in outside)
    assert text.count("<details>") == 1


@given(st.text(max_size=200))
def test_plain_text_is_one_line_without_active_characters(text):
    found = plain(text)
    assert "\n" not in found
    assert not re.search(r"[`*_|<>@]", found)


@pytest.mark.parametrize("limit", [1_000, 5_000, LIMIT])
def test_it_stays_within_the_limit_and_says_what_is_left_out(limit):
    tests = [result(f"test_{i}[cpu]", verdicts=[verdict(reason="r" * 300)], message="m" * 3000) for i in range(200)]
    text = markdown(session(*tests), limit)
    assert len(text) <= limit
    assert text.startswith("## ❌ 200 of 200 tests failed")
    assert "results.json" in text
    assert text.count("<details>") == text.count("</details>")


def test_a_flaky_test_is_shown_though_it_passed():
    flaky = result("test_a[cpu]", "failed", [verdict()])
    flaky.add(Attempt(outcome="passed"))
    assert "test&#95;a&#91;cpu&#93;: flaky" in markdown(session(flaky))
