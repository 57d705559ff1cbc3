"""Decides whether a run is as good as its approved baseline. Pure, but for reading and writing baseline files."""

from harness.gate.compare import compare
from harness.gate.policy import Policy
from harness.gate.verdict import Status, Verdict

__all__ = ["Policy", "Status", "Verdict", "compare"]
