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
        folder: what ``mindspore.profiler`` left: ``cpu_op_type_info_*.csv`` of CPU; ``op_statistic*.csv`` of Ascend, or
            its ``kernel_details.csv``, a line each call.
        steps: that were profiled.

    Raises:
        ProfileError: there is no such file in it, or it is damaged.
    """
    if path := find(folder, "op_statistic*.csv"):
        kind, calls, time, unit = "OP Type", "Count", "Total Time(us)", 1e-6
    elif path := find(folder, "kernel_details.csv"):
        return _from_kernels(path, steps)
    elif path := find(folder, "cpu_op_type_info_*.csv"):
        kind, calls, time, unit = "op_type", "type_occurrences", "total_compute_time", 1e-3
    else:
        raise ProfileError(
            f"{folder.name} holds no op_statistic*.csv, kernel_details.csv or cpu_op_type_info_*.csv: name a folder "
            "that mindspore.profiler left"
        )
    # One kind may run on several sorts of cores.
    rows = read(path, kind, calls, time)
    return _summed([(row[kind], number(row, calls, path), number(row, time, path) * unit) for row in rows], steps)


def _from_kernels(path: Path, steps: int) -> list[Operator]:
    rows = read(path, "Type", "Duration(us)")
    # Where steps were marked, each line tells its own.
    marked = len({row["Step ID"] for row in rows if row.get("Step ID")})
    return _summed([(row["Type"], 1.0, number(row, "Duration(us)", path) * 1e-6) for row in rows], marked or steps)


def _summed(calls: list[tuple[str, float, float]], steps: int) -> list[Operator]:
    found: dict[str, Operator] = {}
    for kind, count, seconds in calls:
        before = found.get(kind, Operator(kind, 0.0, 0.0))
        found[kind] = Operator(kind, before.calls + count / steps, before.seconds + seconds / steps)
    return sorted(found.values(), key=lambda operator: (-operator.seconds, operator.kind))
