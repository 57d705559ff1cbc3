import base64
import gzip
import json
import re

import pytest

from harness.errors import ResultsError
from harness.gate.verdict import Status
from harness.history.courses import Course
from harness.history.database import Point, Series
from harness.history.trend import trend
from harness.report import html as module
from harness.report.html import html
from harness.report.html.charts import charts
from harness.timeline import Event
from tests.gate.builders import make_run
from tests.report.making import NASTY, result, session, verdict


def packed(page, name):
    """What is in one of the page's compressed parts."""
    found = re.search(rf'id="{name}" nonce="[^"]+">([^<]*)</script>', page)
    return gzip.decompress(base64.b64decode(found[1])).decode()


def course(test, values, changed_at=None, **fields):
    points = [
        Point(v, "PASS", "abc", "2.10.0", f"2026-01-{i + 1:02d}T00:00:00Z", "c" * 40) for i, v in enumerate(values)
    ]
    series = Series(f"suites/test_x.py::{test}", "run", "throughput", "cpu-2c")
    return Course(series, points, trend(values, values[0]), fields.get("approvals", []))


def test_the_first_screen_says_what_got_worse_and_where():
    page = html(
        session(
            result("test_a[cpu]", verdicts=[verdict(reason="far away", step=3)], runs=["k"]), runs={"k": make_run()}
        )
    )
    head = page[page.index("<body>") : page.index('id="tests"')]
    for text in ("1 of 1 tests failed; 1 values judged: 1 REGRESSED", "run.loss @3", "+100.00 %", "far away", "cpu-2c"):
        assert text in head
    assert 'href="#suites/test_x.py%3A%3Atest_a%5Bcpu%5D"' in head


def test_a_test_that_fails_by_no_value_is_on_the_first_screen_too():
    page = html(session(result("test_a[cpu]", "error", message="rank 1 was killed by SIGKILL")))
    assert "rank 1 was killed by SIGKILL" in page[: page.index('id="tests"')]


def test_what_needs_a_look_comes_before_what_passed():
    shown = html(
        session(
            result("test_a[cpu]", "skipped"),
            result("test_b[cpu]", "passed", [verdict(Status.PASS)]),
            result("test_c[cpu]", "passed", [verdict(Status.INCONCLUSIVE, lane="advisory")]),
            result("test_d[cpu]", verdicts=[verdict()]),
        )
    )
    assert re.findall(r'<details class="test" id="suites/test_x.py::test_(.)', shown) == ["d", "c", "b", "a"]


def test_what_comes_from_runs_is_text():
    run = make_run(curves={"loss": [1.0]})
    run.samples, run.warnings, run.scenario["model"] = [NASTY, "\x00\x1b\ud800\u202e字\u3000"], [NASTY], NASTY
    failing = result(f"test_a[{NASTY}]", verdicts=[verdict(reason=NASTY, run="k")], message=NASTY, runs=["k"])
    page = html(session(failing, runs={"k": run}), logs={"k": [NASTY]})
    assert "<img" not in page
    assert page.count("&lt;img") > 8
    assert "\ufffd\ufffd\ufffd\ufffd字\u3000" in page
    assert page.encode()
    assert len(re.findall(r"<script[ >]", page)) == len(re.findall(r"<script [^>]*nonce=", page)) == 3


def test_two_pages_share_no_nonce():
    found = {re.search(r"'nonce-([^']+)'", html(session()))[1] for _ in range(2)}
    assert len(found) == 2


def test_a_curve_carries_what_it_was_judged_by():
    run = make_run(curves={"loss": [3.0, 2.0, float("nan")], "learning_rate": [0.1] * 3})
    bad = verdict(step=3, run="k", approved=[3.0, 2.0, 1.0], relative=0.1, absolute=0.0)
    drawn = charts(session(result("test_a[cpu]", verdicts=[bad], runs=["k"]), runs={"k": run}), [])
    (curve,) = drawn["tests"]["suites/test_x.py::test_a[cpu]"]["curves"]
    assert (curve["approved"], curve["relative"], curve["step"]) == ([3.0, 2.0, 1.0], 0.1, 3)
    assert drawn["curves"]["k"]["loss"] == [3.0, 2.0, None]


@pytest.mark.parametrize(("status", "step"), [(Status.PASS, None), (Status.REGRESSED, 2)])
def test_a_curve_that_is_seldom_drawn_is_where_it_did_not_pass(status, step):
    run = make_run(curves={"learning_rate": [0.1, 0.1]})
    judged = verdict(status, "learning_rate", step=2, run="k")
    drawn = charts(session(result("test_a[cpu]", verdicts=[judged], runs=["k"]), runs={"k": run}), [])
    assert [curve["step"] for curve in drawn["tests"]["suites/test_x.py::test_a[cpu]"]["curves"]] == [step] * bool(step)


def test_a_curve_that_passed_has_no_deviating_step():
    run = make_run(curves={"loss": [3.0, 2.0]})
    judged = verdict(Status.PASS, step=2, run="k", approved=[3.0, 2.0])
    drawn = charts(session(result("test_a[cpu]", "passed", [judged], runs=["k"]), runs={"k": run}), [])
    assert drawn["tests"]["suites/test_x.py::test_a[cpu]"]["curves"][0]["step"] is None


def test_of_two_labels_of_a_run_the_worse_is_drawn():
    run = make_run(curves={"loss": [3.0, 2.0]})
    strict = verdict(step=2, run="k", label="strict", approved=[3.0, 1.0])
    loose = verdict(Status.PASS, step=2, run="k", label="loose", approved=[3.0, 2.0])
    drawn = charts(session(result("test_a[cpu]", verdicts=[strict, loose], runs=["k"]), runs={"k": run}), [])
    (curve,) = drawn["tests"]["suites/test_x.py::test_a[cpu]"]["curves"]
    assert (curve["status"], curve["approved"]) == ("REGRESSED", [3.0, 1.0])


def test_a_log_may_begin_with_step_zero():
    assert "run.loss @0" in html(session(result("test_a[cpu]", verdicts=[verdict(step=0)])))


def test_an_outcome_of_another_plugins_stands_among_what_failed():
    tests = result("test_a[cpu]", "passed", [verdict(Status.PASS)]), result("test_b[cpu]", "rerun")
    assert re.findall(r'<details class="test" id="suites/test_x.py::test_(.)', html(session(*tests))) == ["b", "a"]


def test_curves_that_nothing_draws_are_not_packed():
    run = make_run(curves={"loss": [1.0], "tokens_seen": [1.0]})
    drawn = charts(session(result("test_a[cpu]", "passed", runs=["k"]), runs={"k": run}), [])
    assert drawn["curves"]["k"].keys() == {"loss"}


def test_names_are_as_clean_in_the_data_as_on_the_page():
    page = html(session(result("test_a[\u202e\x1b-cpu]")))
    (name,) = json.loads(packed(page, "data"))["tests"]
    assert f'data-test="{name}"' in page


def test_a_label_belongs_to_its_own_run():
    runs = {"a": make_run(curves={"loss": [1.0]}), "b": make_run(curves={"loss": [2.0]})}
    judged = [verdict(run="b", step=1, approved=[1.0])]
    drawn = charts(session(result("test_a[cpu]", verdicts=judged, runs=["a", "b"]), runs=runs), [])
    first, second = drawn["tests"]["suites/test_x.py::test_a[cpu]"]["curves"]
    assert "approved" not in first
    assert second["approved"] == [1.0]


def test_ranks_that_were_recorded_have_times_and_a_timeline():
    run = make_run()
    run.events = [[Event(3, "compute", "F0", 0.0, 0.25)], [Event(3, "receive", "F0", 0.0, 0.125)]]
    drawn = charts(session(result("test_a[cpu]", "passed", runs=["k"]), runs={"k": run}), [])
    found = drawn["tests"]["suites/test_x.py::test_a[cpu]"]
    assert found["times"][0]["kinds"] == {"compute": [250.0, 0.0], "receive": [0.0, 125.0]}
    assert "<svg" in drawn["timelines"]["k"]


def test_memory_stands_side_by_side():
    runs = {"a": make_run(peak_memory=100.0), "b": make_run(peak_memory=50.0)}
    drawn = charts(session(result("test_a[cpu]", "passed", runs=["a", "b"]), runs=runs), [])
    (memory,) = drawn["tests"]["suites/test_x.py::test_a[cpu]"]["memory"]
    assert (memory["metric"], memory["values"]) == ("peak_memory", [100.0, 50.0])


def test_a_trend_carries_changes_and_one_run_is_none():
    many = course("test_a[cpu]", [100.0] * 8 + [80.0] * 8)
    drawn = charts(session(result("test_a[cpu]"), result("test_b[cpu]")), [many, course("test_b[cpu]", [1.0])])
    (found,) = drawn["tests"]["suites/test_x.py::test_a[cpu]"]["trends"]
    assert [part[:2] for part in found["segments"]] == [[0, 8], [8, 16]]
    assert drawn["sessions"][found["sessions"][8]] == ["2026-01-09T00:00:00Z", "c" * 10]
    assert drawn["tests"]["suites/test_x.py::test_b[cpu]"]["trends"] == []


def test_logs_are_shown_where_a_test_failed_and_only_there():
    runs = {"k": make_run()}
    for outcome, shown in (("failed", True), ("passed", False)):
        page = html(session(result("test_a[cpu]", outcome, runs=["k"]), runs=runs), logs={"k": ["the very last line"]})
        assert ("the very last line" in page) is shown


def test_what_it_packs_comes_out_again():
    page = html(session(result("test_a[cpu]")))
    assert json.loads(packed(page, "data"))["tests"].keys() == {"suites/test_x.py::test_a[cpu]"}
    assert "Plotly" in packed(page, "plotly")


def test_a_missing_part_of_the_package_is_named(monkeypatch):
    real = module.resources.files
    monkeypatch.setattr(module.resources, "files", lambda name: real(name) / "nowhere")
    with pytest.raises(
        ResultsError, match=r"page.html.j2 can't be read: No such file.*install mindspore-harness again"
    ):
        html(session())


def test_five_hundred_tests_of_two_hundred_runs_stay_below_eight_megabytes():
    names = [f"test_{i}[cpu]" for i in range(500)]
    values = [1000.0 + (i * 7919 % 97) for i in range(200)]
    tests = [result(name, "passed", [verdict(Status.PASS, reason="r" * 100)] * 5) for name in names]
    template = course(names[0], values)
    courses = [
        Course(Series(f"suites/test_x.py::{name}", "run", "throughput", "m"), template.points, template.trend, [])
        for name in names
    ]
    assert len(html(session(*tests), courses).encode()) < 8e6
