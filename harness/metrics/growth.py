"""Whether something grows without end: a slope over many values, robust against single ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import Undefined

FEWEST = 20
"""Values below which no slope is told."""


@dataclass(frozen=True)
class Growth:
    """A slope, and the 95 % interval that it lies in."""

    slope: float
    low: float
    high: float


def growth(values: Sequence[float], spacing: float = 1.0) -> Growth:
    """Median of the slopes between all pairs (Theil 1950, Sen 1968), which a jump or an outlier does not move.

    Args:
        values: in the order in which they were taken, at equal distances.
        spacing: the distance, so that the slope is in units a step or second.

    Raises:
        Undefined: there are too few values.
    """
    from scipy import stats  # half a second that collection need not spend

    if len(values) < FEWEST:
        raise Undefined(f"{len(values)} values tell of no growth; it takes {FEWEST}")
    found = stats.theilslopes(values, [spacing * i for i in range(len(values))], alpha=0.95)
    return Growth(float(found.slope), float(found.low_slope), float(found.high_slope))
