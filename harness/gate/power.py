"""What the gate can see on a machine whose runs scatter as some null runs did. Pure."""

import math
import statistics
from collections.abc import Sequence

from harness.gate.confirm import CONFIDENCE as CONFIRM_CONFIDENCE
from harness.gate.confirm import LOOKS
from harness.gate.screen import CONFIDENCE, prediction_interval

POWER = 0.95
"""Share of true slowdowns of the claimed size that are found."""

MEDIAN_EFFICIENCY = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of normal values."""


def spread(samples: Sequence[float]) -> float:
    """Between-run standard deviation of the logarithms; at least two positive samples."""
    return statistics.stdev(math.log(sample) for sample in samples)


def seen_by_screen(samples: Sequence[float]) -> float:
    """The smallest slowdown, as a share, that the screen finds in one run with ``POWER``.

    A run slower by that much falls beyond the interval unless noise takes it back, so both half-widths add up.
    """
    outer, inner = prediction_interval(samples, CONFIDENCE), prediction_interval(samples, POWER)
    return math.exp(math.log(outer.high / outer.center) + math.log(inner.high / inner.center)) - 1


def seen_by_pairs(samples: Sequence[float], floor: float) -> float:
    """The smallest slowdown, as a share, that base and head run in turn settle within the bound with ``POWER``.

    Args:
        samples: one value a run of unchanged code.
        floor: relative change below which nothing is called a regression.
    """
    from scipy.special import ndtri

    error = MEDIAN_EFFICIENCY * math.sqrt(2) * spread(samples) / math.sqrt(LOOKS[-1])
    reach = float(ndtri(1 - (1 - CONFIRM_CONFIDENCE) / 2) + ndtri(POWER))
    return max(floor, math.exp(reach * error) - 1)
