"""Optimizer sharding: each data-parallel rank keeps the moments of its own parameters alone.

It updates those, and takes the others from the ranks that own them (Rajbhandari et al. 2020, «ZeRO», stage 1).
"""

from collections.abc import Sequence

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from harness.errors import ScenarioError
from harness.trainer.optimizer import AdamW, decays_of
from harness.trainer.parallel.gather import Gather
from harness.trainer.parallel.traffic import Collective


def owners(sizes: Sequence[int], replicas: int) -> list[int]:
    """Which replica keeps the states of which parameter: largest first, to the one that has least so far."""
    load = [0] * replicas
    found = [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        replica = load.index(min(load))
        found[index] = replica
        load[replica] += sizes[index]
    return found


class ShardedAdamW(nn.Cell):
    """AdamW over the parameters that this replica owns; takes and returns what ``AdamW`` does.

    Updated parameters travel in one AllGather, each replica's share filled up to the largest.
    """

    def __init__(
        self,
        parameters: ms.ParameterTuple,
        decay: float,
        replicas: int,
        replica: int,
        group: str,
        shares: Sequence[float] | None = None,
    ) -> None:
        """Gives this replica its own parameters to keep moments of.

        Args:
            parameters: of the rank; its replicas have the same.
            decay: of matrices.
            replicas: their number.
            replica: this one's.
            group: the group of the replicas.
            shares: as in AdamW.

        Raises:
            ScenarioError: there are more replicas than parameters.
        """
        if replicas > len(parameters):
            raise ScenarioError(
                f"layout.optimizer_sharding and layout.dp={replicas} disagree: the model has {len(parameters)} "
                "parameters, and none is split; use fewer replicas"
            )
        super().__init__(auto_prefix=False)
        sizes = [parameter.size for parameter in parameters]
        found = owners(sizes, replicas)
        self.parameters = parameters
        self.own = [i for i, owner in enumerate(found) if owner == replica]
        self.others = [i for i, owner in enumerate(found) if owner != replica]
        parts = [[i for i, owner in enumerate(found) if owner == r] for r in range(replicas)]
        self.width = width = max(sum(sizes[i] for i in part) for part in parts)
        self.offsets = [0] * len(sizes)
        for r, part in enumerate(parts):
            ends = np.cumsum([0, *(sizes[i] for i in part)]).tolist()
            for i, start in zip(part, ends, strict=False):
                self.offsets[i] = r * width + start
        filling = width - sum(sizes[i] for i in self.own)
        self.filling = Tensor(np.zeros(filling, np.float32)) if filling else None
        decays = decays_of(parameters, decay)
        shares = [1.0] * len(sizes) if shares is None else shares
        own = ms.ParameterTuple([parameters[i] for i in self.own])
        self.adam = AdamW(own, [decays[i] for i in self.own], [shares[i] for i in self.own])
        self.gather = Gather(group, replica, replicas)
        self.all_reduce = ops.AllReduce(ops.ReduceOp.SUM, group)

    def states(self) -> list[ms.Parameter]:
        """What this replica remembers."""
        return self.adam.states()

    def traffic(self) -> list[Collective]:
        """The collectives of one step."""
        return [self.gather.traffic(4 * self.width), Collective("AllReduce", 4)]

    def construct(self, rate: Tensor, step: Tensor, scale: Tensor, gradients: tuple[Tensor, ...]) -> Tensor:
        """Updates every parameter in place and returns the sum of squares of the whole update."""
        squares = self.adam(rate, step, scale, tuple([gradients[i] for i in self.own]))
        parts = [ops.depend(self.parameters[i], squares).reshape(-1) for i in self.own]
        if self.filling is not None:
            parts.append(self.filling)
        gathered = self.gather(ops.concat(parts))
        total = self.all_reduce(squares.reshape(1))
        for i in self.others:
            parameter = self.parameters[i]
            start = self.offsets[i]
            taken = gathered[start : start + parameter.size].reshape(parameter.shape)
            total = ops.depend(total, ops.assign(parameter, taken))
        return total.reshape(())
