"""How fast training goes: throughput, step time, model FLOPs."""

import math
import statistics
from collections.abc import Sequence

from harness.errors import Undefined
from harness.models import ModelConfig

WARMUP_STEPS = 2
"""First steps that no time is taken from: the first compiles, the second fills caches."""


def steady_step_time(step_seconds: Sequence[float], warmup: int) -> float:
    """Mean seconds of a step after the first ``warmup`` ones, which compile and fill caches.

    No step of the steady window is left out: a stall that training waits for is part of its speed.

    Raises:
        Undefined: no step is left, or the clock stepped back.
    """
    for step, seconds in enumerate(step_seconds, start=1):
        if not 0 <= seconds < math.inf:
            raise Undefined(f"step {step} took {seconds:g} s: the clock stepped back or stood still; run it again")
    steady = step_seconds[warmup:]
    if not steady:
        raise Undefined(f"no steady step: {len(step_seconds)} steps were run and the first {warmup} are warm-up")
    return sum(steady) / len(steady)


def throughput(step_seconds: Sequence[float], units_per_step: float, warmup: int) -> float:
    """Units (tokens, samples) a second over the steady window.

    Args:
        step_seconds: wall-clock seconds of each step.
        units_per_step: units that one step processes over all ranks.
        warmup: first steps that do not count.

    Raises:
        Undefined: no step is left after the warm-up.
    """
    seconds = steady_step_time(step_seconds, warmup)
    if not seconds:
        raise Undefined("all steps took no time at all: the clock stood still; run it again")
    return units_per_step / seconds


def steady_spread(step_seconds: Sequence[float], warmup: int) -> float | None:
    """Interquartile range of the steady steps as a share of their median; None below four of them."""
    steady = step_seconds[warmup:]
    if len(steady) < 4:
        return None
    low, middle, high = statistics.quantiles(steady, n=4)
    return (high - low) / middle if middle > 0 else math.inf


def training_flops(
    batch: int, sequence: int, layers: int, width: int, feed_forward: int, vocabulary: int, gated: bool = False
) -> float:
    """Model FLOPs of one step: three times those of a forward pass. Recomputed activations do not count.

    A matrix product of (m, k) and (k, n) is 2·m·k·n. A block holds four projections, two attention products over the
    full (not causal) square, and a feed-forward of two matrices (three where ``gated``); the head follows. Heads
    cancel out (Narayanan et al. 2021, «Efficient Large-Scale Language Model Training on GPU Clusters», appendix).
    """
    projections = 8 * width**2
    attention = 4 * sequence * width
    hidden = (6 if gated else 4) * width * feed_forward
    forward = batch * sequence * (layers * (projections + attention + hidden) + 2 * width * vocabulary)
    return 3.0 * forward


def step_flops(model: ModelConfig, batch: int, sequence: int) -> float:
    """``training_flops`` of a preset."""
    return training_flops(batch, sequence, model.layers, model.width, model.feed_forward, model.vocabulary, gated=True)
