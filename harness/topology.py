"""Which cores each rank is given, so that ranks that work together are close together."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from harness.errors import HardwareError
from harness.layout import Layout

BINDINGS = ("none", "core", "numa")
"""``core``: each rank has cores of its own, chosen here. ``numa``: msrun binds each rank to a NUMA node."""

_NODES = Path("/sys/devices/system/node")


def numa_nodes(folder: Path = _NODES) -> list[list[int]]:
    """The cores of each NUMA node that this process may use; one node where the system tells of none.

    Args:
        folder: Linux's description of the nodes.
    """
    allowed = os.sched_getaffinity(0)
    nodes = []
    for path in sorted(folder.glob("node[0-9]*"), key=lambda found: int(found.name[4:])):
        cores = [core for core in _cores((path / "cpulist").read_text()) if core in allowed]
        if cores:
            nodes.append(cores)
    return nodes or [sorted(allowed)]


def _cores(text: str) -> list[int]:
    """``0-3,8`` → [0, 1, 2, 3, 8]."""
    ends = [(int(first), int(last or first)) for first, last in re.findall(r"(\d+)(?:-(\d+))?", text)]
    return [core for first, last in ends for core in range(first, last + 1)]


def check_binding(binding: str, nodes: Sequence[Sequence[int]]) -> str:
    """``binding``, if it can be had here.

    Raises:
        HardwareError: it is unknown, or there is one NUMA node only.
    """
    if binding not in BINDINGS:
        raise HardwareError(f"binding {binding!r} is unknown; choose from {', '.join(BINDINGS)}")
    if binding == "numa" and len(nodes) < 2:
        raise HardwareError("--bind numa: this machine has one NUMA node; use --bind core")
    return binding


def plan(layout: Layout, nodes: Sequence[Sequence[int]]) -> list[list[int]]:
    """The cores of each rank, as even as can be.

    Ranks of one replica, its stages one after the other with all their shards, get neighbouring cores. Where there are
    more ranks than cores, neighbours share one.

    Args:
        layout: gives the ranks.
        nodes: cores of each NUMA node; those of one node are neighbours.

    Returns:
        One list a rank, by rank number.
    """
    cores = [core for node in nodes for core in node]
    size = layout.world_size
    order = sorted(range(size), key=lambda rank: (layout.position(rank)[1], layout.position(rank)[0], rank))
    found: list[list[int]] = [[] for _ in range(size)]
    for place, rank in enumerate(order):
        if size > len(cores):
            found[rank] = [cores[place * len(cores) // size]]
        else:
            share = len(cores) // size
            found[rank] = cores[place * share : (place + 1) * share]
    return found
