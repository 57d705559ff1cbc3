"""Prints the baseline files of all suite tests, as JSON in the last line: ``python -m harness.commands.collect``."""

import json
import sys

import pytest

from harness.gate.baseline import baseline_path


class Collector:
    """Notes every item before options deselect any."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Called once with all items."""
        for item in items:
            name = getattr(getattr(item, "callspec", None), "params", {}).get("hardware")
            if name:
                self.paths.append(str(baseline_path(item.nodeid, name)))


def main() -> int:
    """Collects; non-zero and no JSON where a suite can't be imported."""
    collector = Collector()
    status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "suites"], plugins=[collector])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return int(status)
    print(json.dumps(collector.paths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
