"""Finds where a series changed, and how far it has drifted from a fixed anchor. Pure."""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

ANCHOR_RUNS = 10
"""How many runs an anchor is taken to rest on: so many healthy ones at its start, where no baseline gives it."""

LEAST_RUNS = 5
"""Runs of a segment at least: fewer are outliers, not a change."""

OUTLIER = 4
"""Standard deviations from the median of its neighbourhood beyond which a run counts as that median: one spike is no
change of level."""

_STEADY = 1e-6
"""Spread, as a share, below which a series counts as exact."""


@dataclass(frozen=True)
class Segment:
    """Neighbouring runs between two changes."""

    start: int
    """Index of the first run."""

    end: int
    """Index after the last one."""

    center: float
    """Median."""

    change: float
    """Relative to the segment before; 0 for the first."""


@dataclass(frozen=True)
class Trend:
    """What a series did."""

    anchor: float
    """The value that drift is measured against; it never follows the series."""

    segments: list[Segment]
    drift: float
    """Of the last segment, relative to the anchor."""

    drifted: bool
    """Whether that is more than the floor, and more than noise makes."""


def trend(values: Sequence[float], anchor: float, floor: float = 0.05) -> Trend:
    """Splits a series into segments of one level each.

    Change points by PELT with a quadratic cost on the logarithms (Killick, Fearnhead & Eckley 2012), from the library
    ruptures; penalty 5·σ²·ln n, above the 2·σ²·ln n of the Schwarz criterion, so that an unchanged series is hardly
    ever split. σ comes from the differences of neighbours, which a change touches only once.

    Neighbouring segments hide a drift of many small steps, each too small to be one. So the last segment is compared
    with an anchor that never follows the series.

    Args:
        values: oldest first, at least one; not positive ones are compared as differences of the largest magnitude.
        anchor: the approved value, or what the first healthy runs came to.
        floor: relative change that matters.
    """
    levels = _levels([*values, anchor])
    sigma = _spread(levels[:-1])
    heights = _without_outliers(levels[:-1], sigma)
    segments: list[Segment] = []
    for start, end in _pieces(heights, sigma):
        center = statistics.median(values[start:end])
        segments.append(Segment(start, end, center, _relative(center, segments[-1].center) if segments else 0.0))
    last = segments[-1]
    offset = statistics.median(heights[last.start : last.end]) - levels[-1]
    noise = 3 * sigma * math.sqrt(1 / (last.end - last.start) + 1 / ANCHOR_RUNS)
    return Trend(
        anchor=anchor,
        segments=segments,
        drift=_relative(last.center, anchor),
        drifted=abs(offset) > max(math.log1p(floor), noise),
    )


def _levels(values: Sequence[float]) -> list[float]:
    if min(values) > 0:
        return [math.log(value) for value in values]
    scale = max(abs(value) for value in values) or 1.0
    return [value / scale for value in values]


def _spread(levels: Sequence[float]) -> float:
    """Standard deviation of the noise, robust against changes of level (median absolute difference of neighbours)."""
    steps = [abs(after - before) for before, after in itertools.pairwise(levels)]
    return statistics.median(steps) / (0.6745 * math.sqrt(2)) if steps else 0.0


def _without_outliers(levels: Sequence[float], sigma: float) -> list[float]:
    """Hampel's filter over a window of five."""
    medians = [statistics.median(levels[max(0, i - 2) : i + 3]) for i in range(len(levels))]
    limit = OUTLIER * max(sigma, _STEADY)
    return [median if abs(level - median) > limit else level for level, median in zip(levels, medians, strict=True)]


def _pieces(levels: Sequence[float], sigma: float) -> list[tuple[int, int]]:
    if len(levels) < 2 * LEAST_RUNS:
        return [(0, len(levels))]
    import numpy as np
    import ruptures  # half a second that collection need not spend

    centered = np.asarray(levels) - np.median(levels)
    penalty = 5 * max(sigma, _STEADY) ** 2 * math.log(len(levels))
    search = ruptures.KernelCPD(kernel="linear", min_size=LEAST_RUNS).fit(centered.reshape(-1, 1))
    ends = search.predict(pen=penalty)
    bounds = [0, *map(int, ends)]
    return list(itertools.pairwise(bounds))


def _relative(value: float, base: float) -> float:
    return (value - base) / abs(base) if base else math.inf if value else 0.0
