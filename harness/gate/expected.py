"""Failures that are known and accepted for a while, by metric, with a reason and a date on which patience ends."""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from harness.errors import PolicyError
from harness.gate.policy import find_metric
from harness.gate.verdict import Status, Verdict

FIELDS = ("test", "metric", "reason", "until")


@dataclass(frozen=True)
class Expected:
    """One expected failure."""

    test: str
    """Part of, or glob on, the test's node id."""

    metric: str
    """The metric that is expected to fail."""

    reason: str
    """Why, for whoever reads the report."""

    until: date
    """Last day on which the failure is accepted."""

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Expected":
        """Reads an entry of the configuration.

        Raises:
            PolicyError: a field is missing, unknown or of the wrong kind.
        """
        if set(content) != set(FIELDS):
            raise PolicyError(
                f"an expected failure has the fields {', '.join(FIELDS)}, not {', '.join(content) or 'none'}"
            )
        for name in ("test", "metric", "reason"):
            if not isinstance(content[name], str) or not content[name].strip():
                raise PolicyError(f"an expected failure's {name} must be a text, not {content[name]!r}")
        if type(content["until"]) is not date:
            raise PolicyError(f"an expected failure's until must be a date like 2027-01-31, not {content['until']!r}")
        find_metric(content["metric"])
        return cls(**content)

    def covers(self, nodeid: str, metric: str) -> bool:
        """Whether this entry speaks of a test's metric."""
        return metric == self.metric and (self.test in nodeid or fnmatch.fnmatch(nodeid, self.test))


def apply(verdict: Verdict, nodeid: str, expected: Iterable[Expected], today: date) -> Verdict:
    """The verdict in the light of what was expected.

    A failure becomes XFAIL until its date; past it, the failure stands and says so. A metric that was expected to fail
    and does not is XPASS, which fails: the entry has done its work and must go. A value without a baseline is neither.
    """
    entry = next((e for e in expected if e.covers(nodeid, verdict.metric)), None)
    if entry is None or verdict.status is Status.NO_BASELINE:
        return verdict
    if verdict.status in (Status.PASS, Status.IMPROVED):
        reason = f"expected to fail ({entry.reason}) and does not: remove the entry"
        return verdict.model_copy(update={"status": Status.XPASS, "reason": reason})
    if today > entry.until:
        reason = f"{verdict.reason}; accepted until {entry.until} ({entry.reason}), which has passed"
        return verdict.model_copy(update={"reason": reason})
    reason = f"expected until {entry.until}: {entry.reason} ({verdict.status.value}: {verdict.reason})"
    return verdict.model_copy(update={"status": Status.XFAIL, "reason": reason})
