"""The site builds without a broken link, and what it shows works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import configuration
from tests.processes import ROOT, called

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def test_it_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False
    )
    assert built.returncode == 0, built.stderr
    for page in PAGES:
        assert page.stem == "index" or (tmp_path / "site" / page.stem / "index.html").exists()
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="https?://(?!squidfunk|www\.mkdocs|zensical)[^"]+\.(?:js|css)"', text)


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"([\w-]+)\.md", (ROOT / "mkdocs.yml").read_text().partition("nav:")[2])
    assert {page.stem for page in PAGES} <= set(listed)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_code_is_python_and_settings_are_settings(page, tmp_path):
    for text in blocks(page, "python"):
        compile(text, page.name, "exec")
    for text in blocks(page, "toml"):
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
        configuration.read(tmp_path)


def test_the_first_ten_minutes_are_as_they_are_told(tmp_path):
    """Every command of the page but the install, in its order, with what the page says of it."""
    page = DOCS / "first-ten-minutes.md"
    (code,) = blocks(page, "python")
    (tmp_path / "test_first.py").write_text(code)
    (tmp_path / "pyproject.toml").write_text('[tool.harness.policy.machine]\nlane = "advisory"\n')
    programs = Path(sys.executable).parent
    commands = [line for text in blocks(page, "sh") for line in text.splitlines() if not line.startswith("pip ")]
    told = {}
    for position, line in enumerate(commands):
        done = called("bash", "-c", line, cwd=tmp_path, PATH=f"{programs}:{os.environ['PATH']}", PYTHONPATH=str(ROOT))
        told[position, line] = done.returncode, done.stdout + done.stderr
    statuses = [(line.split()[0:2], status) for (_, line), (status, _) in told.items()]
    assert statuses == [
        (["harness", "doctor"], 0),
        (["pytest", "-m"], 1),
        (["harness", "baseline"], 1),  # it differs, as with diff(1)
        (["harness", "baseline"], 0),
        (["pytest", "-m"], 0),
        (["pytest", "-m"], 1),
    ], told
    texts = [text for _, text in told.values()]
    assert "NO_BASELINE" in texts[1]
    assert re.search(r"REGRESSED .*loss", texts[-1])
    assert (tmp_path / ".harness/latest/report.html").exists()
