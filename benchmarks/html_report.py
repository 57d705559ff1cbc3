"""What the page of a large session costs: ``python benchmarks/html_report.py``."""

import random
import shutil
import tempfile
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

from harness.gate.verdict import Status, Verdict
from harness.history.database import History, Point, Series
from harness.report.html.session import write_page
from harness.results import Attempt, Results, TestResult

TESTS, RUNS = 500, 200
METRICS = ("loss", "grad_norm", "peak_memory", "throughput", "validation_perplexity")


def results() -> Results:
    """A session of many tests, each with a few values."""
    tests = []
    for name in _names():
        verdicts = [
            Verdict(metric=metric, label="run", status=Status.PASS, value=1.0, baseline=1.0) for metric in METRICS
        ]
        attempt = Attempt(outcome="passed", seconds=1.0, verdicts=verdicts)
        tests.append(TestResult(nodeid=name, hardware="cpu", baseline="", attempts=[attempt]))
    return Results(started="2026-01-01T00:00:00Z", harness="", tests=tests)


def _names() -> list[str]:
    return [f"suites/part/test_{i // 20}.py::test_claim_{i}[cpu]" for i in range(TESTS)]


def fill(history: History) -> None:
    """Stores a value of each test in each of the sessions."""
    drawn = random.Random(1)
    for number in range(RUNS):
        points = [
            (Series(name, "run", "throughput", "m"), Point(drawn.gauss(1000, 20), "PASS", "abc", "2.10.0"))
            for name in _names()
        ]
        day = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}T00:00:00Z"
        history.add(f"s{number}", day, f"{number:040d}", points)


def first_paint(page: Path) -> str:
    """Milliseconds until a headless Chromium shows something."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        return "no chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        tab = browser.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        found = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.close()
    return f"{found / 1e3:.2f}"


def main() -> None:
    """Prints one table."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        url = str(place / "history.sqlite")
        fill(History(url))
        page = place / "report.html"
        begin = perf_counter()
        problem = write_page(page, results(), place, url, place / "baselines", place)
        seconds = perf_counter() - begin
        assert not problem, problem
        table = Table(f"{TESTS} tests × {RUNS} runs", "", "bound", box=None)
        table.add_row("built, s", f"{seconds:.2f}", "3")
        table.add_row("size, MB", f"{page.stat().st_size / 1e6:.1f}", "8")
        table.add_row("first paint, s", first_paint(page), "1")
        Console().print(table)


if __name__ == "__main__":
    main()
