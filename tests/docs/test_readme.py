"""The two READMEs say the same, and what they link to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh.md"


def test_both_show_the_same_commands_and_code():
    blocks = [re.findall(r"```(\w+)\n(.*?)```", path.read_text(), re.DOTALL) for path in (ENGLISH, CHINESE)]
    assert blocks[0] == blocks[1]
    assert len(blocks[0]) == 5


def test_both_lead_to_the_same_pages():
    pages = [set(re.findall(r"\]\(((?:docs/|CONTRIBUTING)[^)]*)\)", path.read_text())) for path in (ENGLISH, CHINESE)]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("page", [ENGLISH, CHINESE, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith(("http", "my_")):
            assert (page.parent / target).exists(), target
