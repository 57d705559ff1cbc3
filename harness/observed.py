"""A run from what a training of others wrote: curves by step, and its speed where it says so. Pure."""

from harness.environment import Environment, Host
from harness.external import External
from harness.metrics.registry import METRICS
from harness.metrics.speed import WARMUP_STEPS, steady_step_time, throughput
from harness.readers.log import Reading
from harness.run import Run


def observed(reading: Reading, external: External, host: Host, mindspore: str) -> Run:
    """The run of a reading.

    Args:
        reading: the curves that were found.
        external: whose they are.
        host: where it ran.
        mindspore: version.
    """
    curves = {name: dict(sorted(curve.items())) for name, curve in reading.curves.items()}
    seconds = list(curves.pop("step_time", {}).values())
    # Logs give it for one device.
    rates = list(curves.pop("achieved_flops", {}).values())[WARMUP_STEPS:]
    metrics = {}
    known = {name: curve for name, curve in curves.items() if name in METRICS and METRICS[name].curve}
    if len(seconds) > WARMUP_STEPS:
        metrics["step_time"] = steady_step_time(seconds, WARMUP_STEPS)
        if external.tokens_per_step:
            metrics["throughput"] = throughput(seconds, external.tokens_per_step, WARMUP_STEPS)
    if rates:
        metrics["achieved_flops"] = external.ranks * sum(rates) / len(rates)
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
        curves={name: list(curve.values()) for name, curve in known.items()},
        steps={name: list(curve) for name, curve in known.items()},
        step_seconds=seconds,
        device_processes=host.device_processes,
        warnings=[*reading.notes(), *_unknown(sorted(curves.keys() - known.keys()))],
    )


def _unknown(names: list[str]) -> list[str]:
    return [f"{', '.join(names)}: no metric of that name, so nothing compares it"] if names else []
