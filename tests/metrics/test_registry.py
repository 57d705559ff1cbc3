from pathlib import Path

from harness.metrics import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_documentation_is_the_registry():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{m.name}`{' (curve)' if m.curve else ''} | {m.unit} | {m.direction} | {m.scope} | {m.relative:g} | "
        f"{m.absolute:g} | {m.description} |"
        for m in METRICS.values()
    ]
