"""Where commands look unless they are told otherwise."""

from pathlib import Path

LATEST = Path(".harness/latest")
BASELINES = Path("baselines")
