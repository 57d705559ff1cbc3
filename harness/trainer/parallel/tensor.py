"""Tensor parallelism: every layer's matrices are spread over ranks (Shoeybi et al. 2019, «Megatron-LM»).

Query, key, value, gate and up are cut by columns, so that each rank has some heads and some hidden features; out and
down by rows, so that their products are summands of the whole. Embedding, head and loss are cut by the vocabulary.
"""

from dataclasses import dataclass

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from harness.trainer.model import Decoder, TiedHead
from harness.trainer.parallel.gather import Gather
from harness.trainer.parallel.traffic import Collective

COLUMNS, ROWS = 1, 0
"""Axis along which a matrix is cut."""


class Copy(nn.Cell):
    """Hands a tensor to all shards: nothing forward, sums the gradients backward."""

    def __init__(self, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.all_reduce = ops.AllReduce(ops.ReduceOp.SUM, group)

    def construct(self, x: Tensor) -> Tensor:
        """Any shape."""
        return x

    def bprop(self, x: Tensor, out: Tensor, gradient: Tensor) -> tuple[Tensor]:
        """The gradients of all shards, summed."""
        return (self.all_reduce(gradient),)


class Sum(nn.Cell):
    """Adds up the summands of all shards: sums forward, hands the gradient on backward."""

    def __init__(self, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.all_reduce = ops.AllReduce(ops.ReduceOp.SUM, group)

    def construct(self, x: Tensor) -> Tensor:
        """Any shape."""
        return self.all_reduce(x)

    def bprop(self, x: Tensor, out: Tensor, gradient: Tensor) -> tuple[Tensor]:
        """Every summand's gradient is that of the sum."""
        return (gradient,)


class Between(nn.Cell):
    """A layer whose input all shards get and whose output all shards make together."""

    def __init__(self, layer: nn.Cell, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.copy = Copy(group)
        self.layer = layer
        self.sum = Sum(group)

    def construct(self, x: Tensor) -> Tensor:
        """What the whole layer computes."""
        return self.sum(self.layer(self.copy(x)))


class VocabularyHead(nn.Cell):
    """Logits of this shard's tokens."""

    def __init__(self, head: nn.Cell, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.copy = Copy(group)
        self.head = head

    def construct(self, x: Tensor) -> Tensor:
        """(…, width) → (…, vocabulary / shards)."""
        return self.head(self.copy(x))


class VocabularyEmbedding(nn.Cell):
    """Each shard looks up its own tokens; those of others count as zero."""

    def __init__(self, weight: Parameter, shard: int, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.weight = weight
        self.tokens = weight.shape[0]
        self.first = shard * self.tokens
        self.sum = Sum(group)

    def construct(self, tokens: Tensor) -> Tensor:
        """(batch, sequence) int32 → (batch, sequence, width)."""
        found, own = local_index(tokens, self.first, self.tokens)
        return self.sum(ops.gather(self.weight, found, 0) * own.expand_dims(-1))


class VocabularyCrossEntropy(nn.Cell):
    """Cross-entropy of logits whose vocabulary is spread over shards; every shard has the whole result."""

    def __init__(self, shards: int, shard: int, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.shard = shard
        # MindSpore's AllReduce on CPU has no maximum: gather the shards' own ones.
        self.gather = Gather(group, shard, shards)
        self.sum_exponentials = Sum(group)
        self.sum_targets = Sum(group)

    def construct(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(rows, vocabulary / shards) float32, (rows,) int32 → (rows,) nats."""
        rows, width = logits.shape
        largest = self.gather(ops.stop_gradient(ops.amax(logits, -1))).reshape(-1, rows)
        shifted = logits - ops.stop_gradient(ops.amax(largest, 0)).expand_dims(-1)
        total = self.sum_exponentials(ops.reduce_sum(ops.exp(shifted), -1))
        found, own = local_index(targets, self.shard * width, width)
        target = ops.gather_elements(shifted, 1, found.expand_dims(-1)).reshape(rows)
        return ops.log(total) - self.sum_targets(target * own)


class GatherVocabulary(nn.Cell):
    """The logits of all shards side by side."""

    def __init__(self, shards: int, shard: int, group: str) -> None:
        super().__init__(auto_prefix=False)
        self.gather = Gather(group, shard, shards)

    def construct(self, logits: Tensor) -> Tensor:
        """(rows, vocabulary / shards) → (rows, vocabulary)."""
        return self.gather(logits.swapaxes(0, 1)).swapaxes(0, 1)


@dataclass(frozen=True)
class Passes:
    """How often a step goes through a part of a model."""

    forward: int
    """For what comes out."""

    backward: int
    again: int = 0
    """Forward once more, by a backward that was handed nothing but the part's input."""

    compiled: bool = True
    """Whether as graphs, from which the compiler takes what nobody needs."""

    recomputed: int = 0
    """Blocks of the part that a backward computes again."""


def local_index(tokens: Tensor, first: int, count: int) -> tuple[Tensor, Tensor]:
    """Tokens counted from this shard's first, and which of them are this shard's (1.0 or 0.0); others become 0."""
    own = ops.logical_and(tokens >= first, tokens < first + count)
    return ops.cast((tokens - first) * own, ms.int32), ops.cast(own, ms.float32)


def spread(model: Decoder, shards: int, shard: int, group: str) -> dict[str, int]:
    """Leaves this rank its shard of every layer.

    Args:
        model: a whole decoder; changed in place.
        shards: ranks that share it.
        shard: this rank's number among them.
        group: their group.

    Returns:
        Name of each parameter that was cut → the axis.
    """
    cut: dict[str, int] = {}

    def take(weight: Parameter, axis: int) -> Parameter:
        cut[weight.name] = axis
        return Parameter(Tensor(np.split(weight.asnumpy(), shards, axis)[shard].copy()), name=weight.name)

    # A child that is inserted, not assigned, keeps the names of its parameters.
    for block in model.blocks:
        attention, feed_forward = block.attention, block.feed_forward
        for matrix in (attention.query, attention.key, attention.value, feed_forward.gate, feed_forward.up):
            matrix.weight = take(matrix.weight, COLUMNS)
        for matrix in (attention.out, feed_forward.down):
            matrix.weight = take(matrix.weight, ROWS)
        attention.heads //= shards
        block.insert_child_to_cell("attention", Between(attention, group))
        block.insert_child_to_cell("feed_forward", Between(feed_forward, group))
    embedding = VocabularyEmbedding(take(model.embedding.weight, ROWS), shard, group)
    model.insert_child_to_cell("embedding", embedding)
    if model.config.tied:
        head = TiedHead(embedding, model.dtype)
    else:
        head = model.head
        head.weight = take(head.weight, COLUMNS)
    model.insert_child_to_cell("head", VocabularyHead(head, group))
    return cut


def traffic(part: nn.Cell, tokens: int, width: int, passes: Passes) -> list[Collective]:
    """The collectives of tensor parallelism in a step of a part of a spread model.

    Args:
        part: looked through for the Cells above.
        tokens: of one pass.
        width: features of the residual stream.
        passes: through the part.
    """
    stream, vector = Collective("AllReduce", 4 * tokens * width), Collective("AllReduce", 4 * tokens)
    found = []
    forward = passes.forward + passes.again
    last = stream
    for _, cell in part.cells_and_names():
        if isinstance(cell, Between | VocabularyEmbedding):
            found += [stream] * forward
        if isinstance(cell, Between | VocabularyHead):
            found += [stream] * passes.backward
        if isinstance(cell, VocabularyCrossEntropy):
            found += [cell.gather.traffic(vector.size)] * forward + [vector] * (2 * forward)
            last = vector
    # What gradients are taken of need not be known itself: the compiler drops the sum that makes it.
    for _ in range(passes.again if passes.compiled else 0):
        found.remove(last)
    # Of a block that is computed again, attention's sum is needed and the block's own output is not.
    return found + [stream] * (passes.recomputed * passes.backward)
