"""Puts what the ranks of a group have side by side."""

import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.communication import GlobalComm

from harness.trainer.parallel.traffic import Collective


class Gather(nn.Cell):
    """AllGather along the first axis.

    On CPU, MindSpore has it for all ranks only. Among some of them, each rank's part is set between zeros and added up,
    which gives the same values for more bytes.
    """

    def __init__(self, group: str, index: int, count: int) -> None:
        """Joins a group.

        Args:
            group: its name.
            index: this rank's number in it.
            count: ranks in it.
        """
        super().__init__(auto_prefix=False)
        self.index, self.count = index, count
        self.adds_up = ms.get_context("device_target") == "CPU" and group != GlobalComm.WORLD_COMM_GROUP
        self.collective = ops.AllReduce(ops.ReduceOp.SUM, group) if self.adds_up else ops.AllGather(group)

    def construct(self, x: Tensor) -> Tensor:
        """(n, …) of this rank → (count · n, …) of all."""
        if self.adds_up:
            nothing = ops.zeros_like(x)
            x = ops.concat([x if i == self.index else nothing for i in range(self.count)])
        return self.collective(x)

    def traffic(self, size: int) -> Collective:
        """The one collective that gathers ``size`` bytes of this rank."""
        return Collective("AllReduce", self.count * size) if self.adds_up else Collective("AllGather", size)
