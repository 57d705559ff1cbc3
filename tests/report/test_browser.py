"""The page in a real browser."""

import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from harness.gate.baseline import Approval
from harness.gate.verdict import Status
from harness.report.html import html
from tests.gate.builders import make_run
from tests.report.making import NASTY, result, session, verdict
from tests.report.test_html import course

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")

HOSTILE = "<img src=https://example.org/x onerror='document.title=1'><script>document.title=2</script>"


def page_text():
    run = make_run(curves={"loss": [3.0, 2.5, 2.4]}, peak_memory=100.0)
    run.samples, run.warnings, run.scenario["model"] = [HOSTILE], [HOSTILE, NASTY], HOSTILE
    regressed = verdict(
        step=2, run="k", reason=HOSTILE, approved=[3.0, 2.0, 1.0], relative=0.1, absolute=0.0, label=HOSTILE
    )
    tests = [
        result("test_a[cpu]", verdicts=[regressed], message=HOSTILE, runs=["k"]),
        result(f"test_b[{HOSTILE}-gpu]", "passed", [verdict(Status.PASS, "throughput")], hardware="gpu"),
        result("test_c[cpu]", "passed", [verdict(Status.PASS, "throughput")]),
        result("test_d[cpu]", "skipped"),
    ]
    approval = Approval(by="", when="2026-01-03T00:00:00Z", reason=HOSTILE, commit="")
    trends = [course("test_a[cpu]", [100.0] * 8 + [80.0] * 8, approvals=[approval])]
    return html(session(*tests, runs={"k": run}), trends, {"k": [HOSTILE]})


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_text(), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, place, request):
    """The page; whatever it does, it asks nobody for anything and logs no error."""
    options = getattr(request, "param", {})
    page = browser.new_page(**options)
    problems, requests = [], []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda asked: requests.append(asked.url))
    page.goto(place.as_uri())
    yield page
    page.close()
    assert problems == []
    assert all(url.startswith((place.as_uri(), "data:", "blob:")) for url in requests)


def visible(page):
    return page.locator("details.test:not([hidden])")


def drawn(page, name="test_a[cpu]"):
    """A test, opened, with its charts."""
    test = page.locator(f'details.test[id="suites/test_x.py::{name}"]')
    test.locator("summary").first.click()
    expect(test.locator(".plot .main-svg").first).to_be_visible()
    return test


def test_it_opens_and_draws_curve_memory_and_trend(opened):
    test = drawn(opened)
    expect(test.locator("figure")).to_have_count(3)
    shapes = test.locator(".plot").first.evaluate("plot => plot.layout.shapes.map(s => s.x0)")
    assert shapes == [2]
    band = test.locator(".plot").first.evaluate("plot => plot.data.slice(0, 2).map(t => [...t.y])")
    assert band == [[2.7, 1.8, 0.9], pytest.approx([3.3, 2.2, 1.1])]


def test_a_trend_marks_changes_and_approvals(opened):
    test = drawn(opened)
    marks = test.locator(".plot").last.evaluate("plot => plot.layout.annotations.map(a => [a.x, a.text])")
    assert marks == [[8.5, "C1"], [2.5, "A2"]]
    assert test.locator("figure small").last.inner_text().startswith("C1 level changed at ccccccc · A2 approved: <img")


def test_markup_of_runs_is_shown_and_never_obeyed(opened):
    test = drawn(opened)
    assert opened.locator("img, iframe, object, main script").count() == 0
    assert opened.title().startswith("✖ 1 of 4 tests failed")
    for place in (".sample", "pre", "td", "h3", "figcaption"):
        assert HOSTILE[:20] in " ".join(test.locator(place).all_inner_texts())


def test_filters_narrow_and_are_in_the_address(opened):
    expect(visible(opened)).to_have_count(4)
    opened.get_by_role("button", name="REGRESSED").click()
    expect(visible(opened)).to_have_count(1)
    opened.get_by_role("button", name="skipped").click()
    expect(visible(opened)).to_have_count(2)
    opened.get_by_role("button", name="gpu").click()
    expect(visible(opened)).to_have_count(0)
    assert opened.locator("#shown").inner_text() == "0 of 4 tests"
    opened.get_by_role("button", name="gpu").click()
    address = opened.url
    opened.goto("about:blank")
    opened.goto(address)
    expect(visible(opened)).to_have_count(2)


def test_the_search_finds_tests_and_metrics(opened):
    opened.get_by_role("searchbox").fill("THROUGHPUT test_c")
    expect(visible(opened)).to_have_count(1)


def test_a_link_leads_to_a_test_whatever_was_filtered(opened):
    opened.get_by_role("button", name="skipped").click()
    opened.locator("#worse + .wide a").first.click()
    test = opened.locator('details[id="suites/test_x.py::test_a[cpu]"]')
    expect(test).to_have_attribute("open", "")
    expect(test).to_be_in_viewport()


def test_keys_search_step_open_and_clear(opened):
    opened.keyboard.press("/")
    opened.keyboard.type("test_c")
    expect(visible(opened)).to_have_count(1)
    opened.keyboard.press("Escape")
    expect(visible(opened)).to_have_count(4)
    for key in "jjk":
        opened.keyboard.press(key)
    opened.keyboard.press("Enter")
    expect(visible(opened).first).to_have_attribute("open", "")


@pytest.mark.parametrize("opened", [{"color_scheme": "dark"}], indirect=True)
def test_it_is_dark_where_the_reader_is_and_follows(opened):
    test = drawn(opened)
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "plot => plot.layout.font.color"
    dark = opened.evaluate(ground), test.locator(".plot").first.evaluate(ink)
    opened.emulate_media(color_scheme="light")
    expect(test.locator(".plot .main-svg").first).to_be_visible()
    opened.wait_for_function("dark => document.querySelector('.plot')?.layout?.font.color !== dark", arg=dark[1])
    assert opened.evaluate(ground) != dark[0]


@pytest.mark.parametrize("opened", [{"viewport": {"width": 360, "height": 740}}], indirect=True)
def test_a_phone_need_not_scroll_sideways(opened):
    drawn(opened)
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_print_has_no_controls(opened):
    opened.emulate_media(media="print")
    assert not opened.locator(".filters").is_visible()
    assert opened.locator("h1").is_visible()


def test_without_scripts_everything_but_charts_is_there(browser, place):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(place.as_uri())
    expect(page.get_by_text("Charts and filters need scripts")).to_be_visible()
    page.locator("summary").first.click()
    expect(page.locator("td", has_text="<img").first).to_be_visible()
    page.close()


def test_charts_that_can_not_be_unpacked_say_so(browser, place, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text(place.read_text(encoding="utf-8").replace('id="data"', 'id="gone"'), encoding="utf-8")
    page = browser.new_page()
    page.goto(broken.as_uri())
    page.locator("summary").first.click()
    expect(page.get_by_text("The charts can't be drawn")).to_be_visible()
    page.close()


def test_no_other_script_and_no_other_place_is_let_in(browser, place, tmp_path):
    """Should markup ever slip through, the page's policy stops it."""
    slipped = (
        "<script>window.slipped = 1</script><img src='https://example.invalid/x.png' onerror='window.slipped = 2'>"
    )
    open_page = tmp_path / "slipped.html"
    open_page.write_text(place.read_text(encoding="utf-8").replace("</main>", f"{slipped}</main>"), encoding="utf-8")
    page = browser.new_page()
    blocked = []
    page.on("console", lambda message: blocked.append(message.text))
    page.goto(open_page.as_uri())
    assert page.evaluate("window.slipped") is None
    assert sum("Content Security Policy" in text for text in blocked) >= 2
    page.close()
