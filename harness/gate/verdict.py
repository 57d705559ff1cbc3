"""What the gate says of one metric."""

from enum import Enum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Status(str, Enum):
    """Every outcome there is; nothing is ever silently passed."""

    PASS = "PASS"  # noqa: S105
    IMPROVED = "IMPROVED"
    REGRESSED = "REGRESSED"
    NO_BASELINE = "NO_BASELINE"
    ENVIRONMENT_CHANGED = "ENVIRONMENT_CHANGED"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"
    XFAIL = "XFAIL"
    XPASS = "XPASS"


WORST_FIRST = (
    Status.INVALID,
    Status.REGRESSED,
    Status.ENVIRONMENT_CHANGED,
    Status.XPASS,
    Status.NO_BASELINE,
    Status.INCONCLUSIVE,
    Status.XFAIL,
    Status.IMPROVED,
    Status.PASS,
)
"""Order of every table."""

_HARMLESS = (Status.PASS, Status.IMPROVED, Status.XFAIL)


class Confirmation(BaseModel):
    """What running base and head again said of a suspicious time."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")

    against: str
    """The base: a git reference or an interpreter."""

    status: Status
    """The first verdict, from the stored runs alone."""

    reason: str
    """Of the first verdict."""

    pairs: int
    """Pairs that counted."""

    ratio: float | None = None
    """Head divided by base, median of the pairs; None where no pair counted."""

    low: float | None = None
    high: float | None = None
    """Ends of its confidence interval."""

    problem: str = ""
    """Why it could not be settled."""


class Verdict(BaseModel):
    """One metric of one run, judged."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")

    metric: str
    status: Status
    reason: str = ""
    """Why; empty for a plain PASS."""

    label: str = ""
    """Which of a test's runs."""

    unit: str = ""
    scope: str = "numeric"
    lane: Literal["gating", "advisory"] = "gating"
    value: float | None = None
    """The scalar, or the curve at ``step``."""

    baseline: float | None = None
    step: int | None = None
    """Of a curve: the first deviating step, from 1, or else the last."""

    divergence: Literal["early", "late"] | None = None
    """Of a curve that regressed: whether it left its band in the first quarter of its steps or later."""

    confirmation: Confirmation | None = None
    run: str = ""
    """Key of the run among the session's; empty where it has none."""

    approved: list[float] = Field(default_factory=list)
    """Of a curve: the baseline, step by step."""

    steps: list[int] = Field(default_factory=list)
    """The steps that it was compared at, where they are not all from 1 on."""

    relative: float | None = None
    absolute: float | None = None
    """Tolerance that a number was compared by; a time's follows from its samples."""

    environment_changes: list[str] = Field(default_factory=list)
    """What the value depends on and is not as it was when the baseline was approved."""

    @property
    def change(self) -> float | None:
        """Relative change against the baseline; None where the baseline is zero or missing."""
        if self.value is None or not self.baseline:
            return None
        return (self.value - self.baseline) / abs(self.baseline)

    @property
    def fails(self) -> bool:
        """Whether the test fails for it.

        A time that this machine has no baseline for can't be judged here, and says so; everything else that is not
        known to be good fails.
        """
        if self.lane == "advisory" or self.status in _HARMLESS:
            return False
        return not (self.status is Status.NO_BASELINE and self.scope == "machine")

    @property
    def as_approved(self) -> bool:
        """Whether an approval would change nothing worth a review."""
        return self.status is Status.PASS and not self.environment_changes

    @property
    def rank(self) -> tuple[bool, int, str, str]:
        """Sort key: what fails first, then the worst status."""
        return not self.fails, WORST_FIRST.index(self.status), self.label, self.metric
