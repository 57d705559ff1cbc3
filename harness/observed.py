"""A run from what a training of others wrote: curves by step, and its speed where it says so. Pure."""

import math
import statistics
from collections.abc import Iterable, Mapping

from harness.assemble import Values, oversubscribed
from harness.environment import Host
from harness.errors import Undefined
from harness.external import External
from harness.metrics.registry import METRICS
from harness.metrics.speed import WARMUP_STEPS, steady_step_time, throughput
from harness.readers.log import Reading
from harness.run import Run

SHOWN = 10
"""Names of curves that nothing compares."""


def observed(reading: Reading, external: External, host: Host, mindspore: str) -> Run:
    """The run of a reading.

    Args:
        reading: the curves that were found.
        external: whose they are.
        host: where it ran.
        mindspore: version.
    """
    curves = {name: dict(sorted(curve.items())) for name, curve in reading.curves.items()}
    times, rates = curves.pop("step_time", {}), curves.pop("achieved_flops", {})
    known = {name: curve for name, curve in curves.items() if name in METRICS and METRICS[name].curve}
    values = Values()
    if times:
        values.add("step_time", lambda: steady_step_time(_timed(times, reading.restarts), 0))
    tokens = external.tokens_per_step
    if tokens:
        values.add("throughput", lambda: throughput(_timed(times, reading.restarts), tokens, 0))
    # Logs give it for one device.
    achieved = _steady(rates, reading.restarts)
    if achieved:
        values.add("achieved_flops", lambda: external.ranks * statistics.fmean(achieved))
    return Run(
        scenario=external.to_dict(),
        hardware=host.hardware,
        environment=host.environment(mindspore, data=""),
        machine=host.machine,
        metrics=values.defined,
        undefined=values.undefined,
        curves={name: list(curve.values()) for name, curve in known.items()},
        steps={name: list(curve) for name, curve in known.items()},
        step_seconds=list(times.values()),
        # Of a finished one nobody knows how many cores it had.
        oversubscribed=oversubscribed(external.ranks, host) if external.command else "",
        device_processes=host.device_processes,
        warnings=[*reading.notes(), *_unknown(sorted(curves.keys() - known.keys()))],
    )


def _timed(times: Mapping[int, float], restarts: Iterable[int]) -> list[float]:
    """Seconds of the steady steps.

    Raises:
        Undefined: a step took a time that is none.
    """
    for step, seconds in times.items():
        if not 0 <= seconds < math.inf:
            raise Undefined(f"step {step} took {seconds:g} s, which is no time")
    return _steady(times, restarts)


def _steady(curve: Mapping[int, float], restarts: Iterable[int]) -> list[float]:
    """Values after the warm-up of each attempt."""
    steps = list(curve)
    warm = set(steps[:WARMUP_STEPS])
    for restart in restarts:
        warm |= set([step for step in steps if step >= restart][:WARMUP_STEPS])
    return [value for step, value in curve.items() if step not in warm]


def _unknown(names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [f"{', '.join(names[:SHOWN])}{more}: no curve of that name is compared"]
