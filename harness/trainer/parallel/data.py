"""Data parallelism: each rank trains on its rows of the batch, and sums are reduced by AllReduce."""

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, ops

from harness.trainer.graph_cache import Graph
from harness.trainer.parallel.traffic import Collective


class Reduce(Graph):
    """Sums loss, token count and gradients over the replicas.

    Fused, all of them are flattened into one bucket. Otherwise loss and token count make one, each gradient its own.
    """

    def __init__(self, parameters: ms.ParameterTuple, group: str, fused: bool = True) -> None:
        super().__init__(auto_prefix=False)
        self.shapes = [(), (), *(tuple(p.shape) for p in parameters)]
        items = range(len(self.shapes))
        self.buckets = [list(items)] if fused else [[0, 1], *([i] for i in items[2:])]
        self.all_reduce = ops.AllReduce(ops.ReduceOp.SUM, group)

    def construct(self, *sums: Tensor) -> tuple[Tensor, ...]:
        """Loss sum, token count and gradients of this rank → those of all ranks."""
        found = []
        for bucket in self.buckets:
            flat = self.all_reduce(ops.concat([sums[i].reshape(-1) for i in bucket]))
            start = 0
            for i in bucket:
                size = sums[i].size
                found.append(flat[start : start + size].reshape(self.shapes[i]))
                start += size
        return tuple(found)

    def traffic(self) -> list[Collective]:
        """The collectives of one step."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        return [Collective("AllReduce", 4 * sum(sizes[i] for i in bucket)) for bucket in self.buckets]


def share(rows: npt.NDArray[np.int64], replicas: int, replica: int) -> npt.NDArray[np.int64]:
    """This replica's rows of a global batch: a contiguous part, so that all replicas together hold the whole batch."""
    size = len(rows) // replicas
    return rows[replica * size : (replica + 1) * size]
