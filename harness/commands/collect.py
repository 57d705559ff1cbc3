"""Prints what the tests of some modules ask for, in the last line: ``python -m harness.commands.collect FILE …``."""

import json
import sys
from pathlib import Path

import pytest

from harness.orphans import OrphanWatch


def main(modules: list[str]) -> int:
    """Collects; non-zero and no JSON where a module can't be imported."""
    watch = OrphanWatch(Path(), strict=False)
    status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *modules], plugins=[watch])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return int(status)
    print(json.dumps({"asked": sorted(watch.asked), "skipped": sorted(watch.skipped)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
