"""Where the time of a session goes, from its own records.

    python benchmarks/session.py [FOLDER]

FOLDER is a session's results, the latest by default. Prints a table; never fails.
"""

import sys
from collections import Counter
from pathlib import Path

from harness.results import read
from harness.run import PHASES


def main(folder: Path) -> None:
    """Adds up and prints."""
    results = read(folder)
    total = sum(attempt.seconds for test in results.tests for attempt in test.attempts)
    spent: Counter[str] = Counter()
    for run in results.runs.values():
        spent.update(run.phases)
    print(f"{len(results.tests)} tests, {len(results.runs)} runs, {total:.0f} s in tests")
    for name in PHASES:
        print(f"{name:>9} {spent[name]:7.1f} s {spent[name] / max(total, 1e-9):6.1%}")
    rest = total - sum(spent.values())
    print(f"{'the rest':>9} {rest:7.1f} s {rest / max(total, 1e-9):6.1%}")
    slowest = sorted(results.runs.values(), key=lambda run: -sum(run.phases.values()))
    for run in slowest[:10]:
        parts = "  ".join(f"{name} {run.phases[name]:.1f}" for name in PHASES if run.phases.get(name, 0.0) >= 0.1)
        print(f"{sum(run.phases.values()):6.1f} s  {run.key}: {parts}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".harness/latest"))
