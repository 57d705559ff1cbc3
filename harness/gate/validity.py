"""Whether a time was measured at all, before anybody asks whether it got worse."""

from harness.gate.policy import Policy
from harness.gate.verdict import Status
from harness.metrics.registry import Metric
from harness.metrics.speed import WARMUP_STEPS, steady_spread
from harness.run import Run


def problem(metric: Metric, run: Run, policy: Policy) -> tuple[Status, str] | None:
    """Why a time of a run says nothing; None where it does.

    Args:
        metric: one of scope ``machine``.
        run: the run it was measured in.
        policy: bounds of sharing and spread.

    Returns:
        INVALID where others used the device or the cores, INCONCLUSIVE where the steps scattered too widely, each with
        the reason.
    """
    if run.device_processes:
        reason = f"not alone: {run.device_processes} other process(es) were on the devices when it started"
        return Status.INVALID, f"{reason}; free them and run it again"
    if run.foreign_load is not None and run.foreign_load > policy.shared:
        used = f"others used {100 * run.foreign_load:.0f} % of the cores while it was measured"
        return (
            Status.INVALID,
            f"not alone: {used}, {100 * policy.shared:.0f} % allowed; run it again on a quiet machine",
        )
    spread = steady_spread(run.step_seconds, WARMUP_STEPS) if metric.steady else None
    if spread is not None and spread > policy.spread:
        reason = f"too noisy to say: half of the steady steps scatter over {100 * spread:.0f} % of their median"
        return Status.INCONCLUSIVE, f"{reason}, {100 * policy.spread:.0f} % allowed; run it again"
    return None
