"""How often operators of each kind were called, and how long they took."""

from pathlib import Path
from typing import NamedTuple

from harness.errors import ProfileError
from harness.profiling.table import find, number, read


class Operator(NamedTuple):
    """All operators of one kind in a step."""

    kind: str
    calls: float
    seconds: float


COMMUNICATION = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "AlltoAllV", "Broadcast", "Send", "Receive"}
"""Kinds that communicate; on Ascend their names begin with ``hcom``."""


def communicates(operator: Operator) -> bool:
    """Whether it is a collective or a message."""
    return operator.kind in COMMUNICATION or operator.kind.lower().startswith("hcom")


def read_operators(folder: Path, steps: int) -> list[Operator]:
    """The operators of a step, slowest kind first.

    Args:
        folder: what ``mindspore.profiler`` left: ``cpu_op_type_info_*.csv`` of CPU, ``op_statistic*.csv`` of Ascend.
        steps: that were profiled.

    Raises:
        ProfileError: there is no such file in it, or it is damaged.
    """
    if path := find(folder, "op_statistic*.csv"):
        kind, calls, time, unit = "OP Type", "Count", "Total Time(us)", 1e-6
    elif path := find(folder, "cpu_op_type_info_*.csv"):
        kind, calls, time, unit = "op_type", "type_occurrences", "total_compute_time", 1e-3
    else:
        raise ProfileError(
            f"{folder.name} holds neither op_statistic*.csv nor cpu_op_type_info_*.csv: name a folder that "
            "mindspore.profiler left"
        )
    found: dict[str, Operator] = {}
    for row in read(path, kind, calls, time):
        # One kind may run on several sorts of cores.
        before = found.get(row[kind], Operator(row[kind], 0.0, 0.0))
        found[row[kind]] = Operator(
            row[kind],
            before.calls + number(row, calls, path) / steps,
            before.seconds + number(row, time, path) * unit / steps,
        )
    return sorted(found.values(), key=lambda operator: (-operator.seconds, operator.kind))
