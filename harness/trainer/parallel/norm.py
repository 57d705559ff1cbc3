"""Norms and sums over ranks that hold shards, stages and copies of one model."""

from collections.abc import Collection, Sequence

from mindspore import Parameter, Tensor, ops

from harness.trainer.graph_cache import Graph


class Agree(Graph):
    """Adds up what the ranks of one replica contribute."""

    def __init__(self, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.all_reduce = ops.AllReduce(ops.ReduceOp.SUM, group)

    def construct(self, values: Tensor) -> Tensor:
        """(n,) float32 of this rank → of all."""
        return self.all_reduce(values)


def contributions(
    parameters: Sequence[Parameter], cut: Collection[str], shards: int, counted_elsewhere: Collection[str] = ()
) -> list[float]:
    """The share of each parameter's sum of squares that this rank contributes, so that each value counts once.

    The same rule as ``harness.metrics.norms.global_norm``: a copy on ``n`` ranks contributes 1 / n.

    Args:
        parameters: of this rank.
        cut: names of those that are spread over the shards; the others stand on every shard.
        shards: number of shards.
        counted_elsewhere: names that another stage contributes.
    """
    return [0.0 if p.name in counted_elsewhere else 1.0 if p.name in cut else 1.0 / shards for p in parameters]
