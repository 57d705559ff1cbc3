"""Where the time of each step went, as Ascend's profiler tells it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Undefined
from harness.profiling.table import find, number, read

COMPUTING, EXPOSED, OVERLAPPED, FREE = "Computing", "Communication(Not Overlapped)", "Overlapped", "Free"
COMMUNICATION, BUBBLE = "Communication", "Bubble"


@dataclass(frozen=True)
class StepTrace:
    """One step of one rank, in seconds."""

    step: str
    rank: str
    """Empty in the file of a single rank."""

    computing: float
    communication: float
    exposed: float
    """Communication that no computing hides."""

    overlapped: float
    free: float
    """Neither computing nor communicating."""

    bubble: float
    """Of a pipeline, waiting to receive."""

    @property
    def length(self) -> float:
        """Of the step."""
        return self.computing + self.exposed + self.free


def read_steps(folder: Path) -> list[StepTrace]:
    """The steps of a profiler's folder: of all ranks where there is a ``cluster_step_trace_time.csv``.

    Returns:
        Nothing where there is no such file: Ascend's profiler alone writes one.

    Raises:
        ProfileError: it is damaged.
    """
    path = find(folder, "cluster_step_trace_time.csv") or find(folder, "step_trace_time.csv")
    if path is None:
        return []
    is_cluster = path.name.startswith("cluster")
    needed = [COMPUTING, EXPOSED, OVERLAPPED, COMMUNICATION, FREE, BUBBLE, *(["Type", "Index"] if is_cluster else [])]
    found = []
    for row in read(path, "Step", *needed):
        if is_cluster and row["Type"] != "rank":
            continue
        seconds = {name: number(row, name, path) * 1e-6 for name in needed[:6]}
        found.append(
            StepTrace(
                step=row["Step"],
                rank=row["Index"] if is_cluster else "",
                computing=seconds[COMPUTING],
                communication=seconds[COMMUNICATION],
                exposed=seconds[EXPOSED],
                overlapped=seconds[OVERLAPPED],
                free=seconds[FREE],
                bubble=seconds[BUBBLE],
            )
        )
    return found


def shares(steps: Sequence[StepTrace]) -> dict[str, float]:
    """Metrics of the harness from a profile: of the rank that does worst in each, its mean over the steps.

    Raises:
        Undefined: no step took any time.
    """
    by_rank: dict[str, list[StepTrace]] = {}
    for step in steps:
        if step.length > 0:
            by_rank.setdefault(step.rank, []).append(step)
    if not by_rank:
        raise Undefined("the profile holds no step that took any time")

    ranks = list(by_rank.values())
    times = [sum(step.length for step in own) for own in ranks]
    pairs = list(zip(ranks, times, strict=True))
    return {
        "step_time": max(time / len(own) for own, time in pairs),
        "exposed_communication": max(sum(step.exposed for step in own) / time for own, time in pairs),
        "communication_share": max(sum(step.communication for step in own) / time for own, time in pairs),
        "bubble_ratio": max(sum(step.bubble for step in own) / time for own, time in pairs),
        "device_utilization": min(sum(step.computing for step in own) / time for own, time in pairs),
    }
