"""A run from what a training of others wrote: curves by step, and its speed where it says so. Pure."""

import math
from collections.abc import Iterable, Mapping

from harness.environment import Environment, Host
from harness.external import External
from harness.metrics.registry import METRICS
from harness.metrics.speed import WARMUP_STEPS
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
    metrics: dict[str, float] = {}
    undefined: dict[str, str] = {}
    steady = _steady(times, reading.restarts)
    bad = next((step for step, seconds in times.items() if not 0 <= seconds < math.inf), None)
    if bad is not None:
        undefined["step_time"] = f"step {bad} took {times[bad]:g} s, which is no time"
    elif steady:
        metrics["step_time"] = sum(steady) / len(steady)
    if external.tokens_per_step:
        if metrics.get("step_time"):
            metrics["throughput"] = external.tokens_per_step / metrics["step_time"]
        else:
            undefined["throughput"] = undefined.get("step_time", "no steady step took a time that was told")
    # Logs give it for one device.
    achieved = _steady(rates, reading.restarts)
    if achieved:
        metrics["achieved_flops"] = external.ranks * sum(achieved) / len(achieved)
    shared = external.ranks > host.cores and host.hardware == "cpu" and bool(external.command)
    return Run(
        scenario=external.to_dict(),
        hardware=host.hardware,
        environment=Environment(
            hardware=host.hardware,
            architecture=host.architecture,
            mindspore=mindspore,
            data="",
            driver=host.driver,
        ),
        machine=host.machine,
        metrics=metrics,
        undefined=undefined,
        curves={name: list(curve.values()) for name, curve in known.items()},
        steps={name: list(curve) for name, curve in known.items()},
        step_seconds=list(times.values()),
        oversubscribed=f"{external.ranks} ranks share {host.cores} cores" if shared else "",
        device_processes=host.device_processes,
        warnings=[*reading.notes(), *_unknown(sorted(curves.keys() - known.keys()))],
    )


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
