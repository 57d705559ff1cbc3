"""Where ranks run: on this machine, bound to cores or not, or over the nodes of a cluster."""

import sys
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HardwareError

LAUNCHERS = ("local", "slurm")
STARTS = ("fork", "fresh")


@dataclass(frozen=True)
class Placement:
    """Where ranks run.

    Raises:
        HardwareError: a value can't work.
    """

    launcher: str = "local"
    """``local`` starts them here; ``slurm`` on nodes that Slurm gives, by one msrun a node."""

    binding: str = "none"
    """Of ranks to cores, one of ``harness.topology.BINDINGS``."""

    ranks_per_node: int = 8
    """Of a cluster, at most."""

    start: str = "fork"
    """``fork`` takes processes that have imported MindSpore already, where that is known to be safe; ``fresh`` starts
    each anew, by msrun where they are several."""

    def __post_init__(self) -> None:
        if self.launcher not in LAUNCHERS:
            raise HardwareError(f"launcher {self.launcher!r} is unknown; choose from {', '.join(LAUNCHERS)}")
        if self.start not in STARTS:
            raise HardwareError(f"start {self.start!r} is unknown; choose from {', '.join(STARTS)}")
        if self.ranks_per_node < 1:
            raise HardwareError(f"{self.ranks_per_node} ranks a node is none; give at least 1")
        if self.launcher == "slurm" and self.binding != "none":
            raise HardwareError(f"--bind {self.binding} is for this machine; have Slurm bind (SLURM_CPU_BIND)")

    def forks(self, hardware: str, python: Path) -> bool:
        """Whether ranks are forked.

        They are on CPU alone: drivers of devices do not survive a fork. NUMA binding is msrun's, and another
        interpreter may have a MindSpore with which it is untested.

        Args:
            hardware: that they train on.
            python: their interpreter.
        """
        here = self.launcher == "local" and self.binding != "numa" and python == Path(sys.executable)
        return self.start == "fork" and hardware == "cpu" and here

    def nodes(self, ranks: int) -> int:
        """Nodes that ranks take, as many on each.

        Raises:
            HardwareError: they do not come out even.
        """
        nodes = -(-ranks // self.ranks_per_node)
        if ranks % nodes:
            raise HardwareError(
                f"{ranks} ranks over {nodes} nodes do not come out even; give --ranks-per-node a divisor of {ranks}"
            )
        return nodes


HERE = Placement()
"""On this machine, wherever the system puts them."""
