"""Data parallelism: each rank trains on its rows of the batch, and sums are reduced in one AllReduce."""

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, nn, ops


class Reduce(nn.Cell):
    """Sums loss, token count and gradients over the replicas, flattened into one bucket."""

    def __init__(self, parameters: ms.ParameterTuple, replicas: int) -> None:
        super().__init__(auto_prefix=False)
        self.replicas = replicas
        self.shapes = [(), (), *(tuple(p.shape) for p in parameters)]
        self.offsets = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)]).tolist()
        if replicas > 1:
            self.all_reduce = ops.AllReduce(ops.ReduceOp.SUM)

    def construct(self, *sums: Tensor) -> tuple[Tensor, ...]:
        """Loss sum, token count and gradients of this rank → those of all ranks."""
        if self.replicas == 1:
            return sums
        bucket = self.all_reduce(ops.concat([x.reshape(-1) for x in sums]))
        return tuple(
            [bucket[self.offsets[i] : self.offsets[i + 1]].reshape(self.shapes[i]) for i in range(len(self.shapes))]
        )


def share(rows: npt.NDArray[np.int64], replicas: int, replica: int) -> npt.NDArray[np.int64]:
    """This replica's rows of a global batch: a contiguous part, so that all replicas together hold the whole batch."""
    size = len(rows) // replicas
    return rows[replica * size : (replica + 1) * size]
