"""Draws the pictures of the documentation from the last session.

pytest -m cpu suites/training/test_loss.py --plant learning_rate=1.1
python docs/images/draw.py
"""

import io
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from harness.report.terminal import session_summary
from harness.results import read

HERE = Path(__file__).parent
LATEST = Path(".harness/latest")
WIDTH, HEIGHT = 1200, 760


def page() -> None:
    """The session's page, and the first curve of its worst test."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto((LATEST.resolve() / "report.html").as_uri())
        tab.screenshot(path=HERE / "report.png")
        tab.locator("details.test > summary").first.click()
        tab.locator(".plot .main-svg").first.wait_for()
        tab.locator(".charts figure").first.screenshot(path=HERE / "curve.png")
        browser.close()


def terminal() -> None:
    """The table at the session's end."""
    text = session_summary(read(LATEST), 120, color=True, verbose=False)
    width = max(len(Text.from_ansi(line)) for line in text.splitlines())
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(Text.from_ansi(text))
    # No font is fetched from anywhere.
    drawn = console.export_svg(title="pytest -m cpu suites", theme=DIMMED_MONOKAI)
    start, end = drawn.index("@font-face"), drawn.rindex("@font-face")
    (HERE / "terminal.svg").write_text(drawn[:start] + drawn[drawn.index("}", end) + 1 :])


if __name__ == "__main__":
    page()
    terminal()
