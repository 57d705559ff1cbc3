"""The decoder with a strategy on every operator: how many pieces each axis of each input is cut into.

Each Cell here stands for one of ``harness.trainer.model`` and uses its parameters. Rows are cut over data-parallel
ranks, heads, hidden features and the vocabulary over tensor-parallel ones (Megatron-LM's cuts), so that the compiler
has to add nothing but the sums that ``harness.trainer.parallel.tensor`` spells out.
"""

import math

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops

from harness.corpus import IGNORED
from harness.trainer import model as plain

Cut = tuple[int, ...]
"""Pieces along each axis; () for a scalar."""


class Product(nn.Cell):
    """``Matrix`` by columns or by rows, on (tokens, features)."""

    def __init__(self, matrix: plain.Matrix, dp: int, inner: int, outer: int) -> None:
        """Cuts a matrix.

        Args:
            matrix: gives the weight and the type of the product.
            dp: pieces of the tokens.
            inner: pieces of the weight's rows.
            outer: pieces of its columns.
        """
        super().__init__(auto_prefix=False)
        self.matrix, self.dtype = matrix, matrix.dtype
        self.is_low = matrix.dtype != ms.float32
        self.matmul = ops.MatMul().shard(((dp, inner), (inner, outer)))
        self.cast_x = ops.Cast().shard(((dp, inner),))
        self.cast_weight = ops.Cast().shard(((inner, outer),))
        self.cast_back = ops.Cast().shard(((dp, outer),))

    def construct(self, x: Tensor) -> Tensor:
        """(tokens, rows) → (tokens, columns), float32."""
        if self.is_low:
            low = self.matmul(self.cast_x(x, self.dtype), self.cast_weight(self.matrix.weight, self.dtype))
            return self.cast_back(low, ms.float32)
        return self.matmul(x, self.matrix.weight)


class Norm(nn.Cell):
    """``RMSNorm`` on (tokens, width)."""

    def __init__(self, norm: plain.RMSNorm, dp: int) -> None:
        super().__init__(auto_prefix=False)
        self.norm, self.epsilon = norm, norm.epsilon
        rows: Cut = (dp, 1)
        self.square = ops.Square().shard((rows,))
        self.mean = ops.ReduceMean(keep_dims=True).shard((rows,))
        self.add = ops.Add().shard((rows, ()))
        self.rsqrt = ops.Rsqrt().shard((rows,))
        self.normalize = ops.Mul().shard((rows, rows))
        self.scale = ops.Mul().shard((rows, (1,)))

    def construct(self, x: Tensor) -> Tensor:
        """(tokens, width) → the same."""
        root = self.rsqrt(self.add(self.mean(self.square(x), -1), self.epsilon))
        return self.scale(self.normalize(x, root), self.norm.weight)


class Attention(nn.Cell):
    """``Attention``: each rank has its heads."""

    def __init__(self, attention: plain.Attention, dp: int, tp: int) -> None:
        super().__init__(auto_prefix=False)
        self.heads, self.features = attention.heads, attention.features
        self.query = Product(attention.query, dp, 1, tp)
        self.key = Product(attention.key, dp, 1, tp)
        self.value = Product(attention.value, dp, 1, tp)
        self.out = Product(attention.out, dp, tp, 1)
        self.cos, self.sin, self.mask = attention.cos, attention.sin, attention.mask
        cut: Cut = (dp, tp, 1, 1)
        self.to_heads = ops.Transpose().shard(((dp, 1, tp, 1),))
        self.transpose = ops.Transpose().shard((cut,))
        self.half = ops.StridedSlice().shard((cut,))
        self.turn = ops.Mul().shard((cut, (1, 1)))
        self.add, self.sub = ops.Add().shard((cut, cut)), ops.Sub().shard((cut, cut))
        self.concat = ops.Concat(-1).shard((cut, cut))
        self.products = ops.BatchMatMul().shard((cut, cut))
        self.scale = ops.Mul().shard((cut, ()))
        self.add_mask = ops.Add().shard((cut, (1, 1)))
        self.softmax = ops.Softmax(-1).shard((cut,))
        self.factor = 1 / math.sqrt(self.features)

    def construct(self, x: Tensor, rows: int, sequence: int) -> Tensor:
        """(rows · sequence, width) → the same."""
        shape = (rows, sequence, self.heads, self.features)
        query = self.rotate(self.to_heads(self.query(x).reshape(shape), (0, 2, 1, 3)))
        key = self.rotate(self.to_heads(self.key(x).reshape(shape), (0, 2, 1, 3)))
        value = self.to_heads(self.value(x).reshape(shape), (0, 2, 1, 3))
        scores = self.scale(self.products(query, self.transpose(key, (0, 1, 3, 2))), self.factor)
        mixed = self.products(self.softmax(self.add_mask(scores, self.mask)), value)
        merged = self.transpose(mixed, (0, 2, 1, 3)).reshape((rows * sequence, self.heads * self.features))
        return self.out(merged)

    def rotate(self, x: Tensor) -> Tensor:
        """As the plain one's."""
        rows, heads, sequence, features = x.shape
        half, one = features // 2, (1, 1, 1, 1)
        first = self.half(x, (0, 0, 0, 0), (rows, heads, sequence, half), one)
        second = self.half(x, (0, 0, 0, half), (rows, heads, sequence, features), one)
        left = self.sub(self.turn(first, self.cos), self.turn(second, self.sin))
        right = self.add(self.turn(second, self.cos), self.turn(first, self.sin))
        return self.concat((left, right))


class FeedForward(nn.Cell):
    """``FeedForward``: each rank has its hidden features."""

    def __init__(self, feed_forward: plain.FeedForward, dp: int, tp: int) -> None:
        super().__init__(auto_prefix=False)
        self.gate = Product(feed_forward.gate, dp, 1, tp)
        self.up = Product(feed_forward.up, dp, 1, tp)
        self.down = Product(feed_forward.down, dp, tp, 1)
        self.sigmoid = ops.Sigmoid().shard(((dp, tp),))
        self.mul = ops.Mul().shard(((dp, tp), (dp, tp)))

    def construct(self, x: Tensor) -> Tensor:
        """(tokens, width) → the same."""
        gate = self.gate(x)
        return self.down(self.mul(self.mul(gate, self.sigmoid(gate)), self.up(x)))


class Block(nn.Cell):
    """``Block``."""

    def __init__(self, block: plain.Block, dp: int, tp: int) -> None:
        super().__init__(auto_prefix=False)
        self.attention_norm = Norm(block.attention_norm, dp)
        self.attention = Attention(block.attention, dp, tp)
        self.feed_forward_norm = Norm(block.feed_forward_norm, dp)
        self.feed_forward = FeedForward(block.feed_forward, dp, tp)
        self.add = ops.Add().shard(((dp, 1), (dp, 1)))

    def construct(self, x: Tensor, rows: int, sequence: int) -> Tensor:
        """(rows · sequence, width) → the same."""
        x = self.add(x, self.attention(self.attention_norm(x), rows, sequence))
        return self.add(x, self.feed_forward(self.feed_forward_norm(x)))


class Embedding(nn.Cell):
    """``Embedding``: each rank looks up its part of the vocabulary."""

    def __init__(self, weight: Parameter, dp: int, tp: int) -> None:
        super().__init__(auto_prefix=False)
        self.weight = weight
        # The strategy of the output asks for a sum; without it the compiler may scatter and gather again.
        self.gather = ops.Gather().shard(((tp, 1), (dp, 1)), ((dp, 1, 1),))

    def construct(self, tokens: Tensor) -> Tensor:
        """(rows, sequence) → (rows, sequence, width)."""
        return self.gather(self.weight, tokens, 0)


class TiedHead(nn.Cell):
    """``TiedHead`` on (tokens, width): the embedding's rows are the head's columns."""

    def __init__(self, weight: Parameter, dp: int, tp: int) -> None:
        super().__init__(auto_prefix=False)
        self.weight = weight
        self.matmul = ops.MatMul(transpose_b=True).shard(((dp, 1), (tp, 1)))

    def construct(self, x: Tensor) -> Tensor:
        """(tokens, width) → (tokens, vocabulary)."""
        return self.matmul(x, self.weight)


class HeadLoss(nn.Cell):
    """Last norm, logits, and cross-entropy whose vocabulary is cut."""

    def __init__(self, decoder: plain.Decoder, dp: int, tp: int, scale: float) -> None:
        super().__init__(auto_prefix=False)
        self.norm = Norm(decoder.norm, dp)
        tied = decoder.config.tied
        self.head = TiedHead(decoder.embedding.weight, dp, tp) if tied else Product(decoder.head, dp, 1, tp)
        logits: Cut = (dp, tp)
        rows: Cut = (dp, 1)
        self.largest = ops.ReduceMax(keep_dims=True).shard((logits,))
        self.shift = ops.Sub().shard((logits, rows))
        self.exp = ops.Exp().shard((logits,))
        self.sum = ops.ReduceSum(keep_dims=True).shard((logits,))
        self.log = ops.Log().shard((rows,))
        self.one_hot = ops.OneHot().shard((logits, (), ()))
        self.pick = ops.Mul().shard((logits, logits))
        self.sub = ops.Sub().shard((rows, rows))
        self.clean = ops.Maximum().shard(((dp,), ()))
        self.differs = ops.NotEqual().shard(((dp,), ()))
        self.cast = ops.Cast().shard(((dp,),))
        self.weigh = ops.Mul().shard(((dp,), (dp,)))
        self.total = ops.ReduceSum().shard(((dp,),))
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)
        self.scale = scale

    def construct(self, x: Tensor, targets: Tensor) -> Tensor:
        """(tokens, width), (tokens,) → scaled sum of negative log-likelihoods."""
        logits = self.head(self.norm(x))
        shifted = self.shift(logits, ops.stop_gradient(self.largest(logits, -1)))
        hot = self.one_hot(self.clean(targets, 0), logits.shape[-1], self.on, self.off)
        nll = self.sub(self.log(self.sum(self.exp(shifted), -1)), self.sum(self.pick(shifted, hot), -1)).reshape((-1,))
        counted = self.cast(self.differs(targets, IGNORED), ms.float32)
        return self.total(self.weigh(nll, counted)) * self.scale


class Loss(nn.Cell):
    """Windows to the scaled loss."""

    def __init__(self, decoder: plain.Decoder, dp: int, tp: int, scale: float) -> None:
        """Puts strategies on a decoder.

        Args:
            decoder: gives the parameters.
            dp: data-parallel ranks.
            tp: tensor-parallel ranks.
            scale: factor of the loss.
        """
        super().__init__(auto_prefix=False)
        self.embedding = Embedding(decoder.embedding.weight, dp, tp)
        self.blocks = nn.CellList([Block(block, dp, tp) for block in decoder.blocks], auto_prefix=False)
        self.head = HeadLoss(decoder, dp, tp, scale)
        self.cut = ops.StridedSlice().shard(((dp, 1),))
        self.clean = ops.Maximum().shard(((dp, 1), ()))

    def construct(self, windows: Tensor) -> Tensor:
        """(rows, sequence + 1) int32 → scalar."""
        rows, length = windows.shape
        inputs = self.clean(self.cut(windows, (0, 0), (rows, length - 1), (1, 1)), 0)
        targets = self.cut(windows, (0, 1), (rows, length), (1, 1)).reshape((-1,))
        x = self.embedding(inputs).reshape((rows * (length - 1), -1))
        for block in self.blocks:
            x = block(x, rows, length - 1)
        return self.head(x, targets)


class InlinedLate(Loss):
    """``Loss`` for a pipeline: the compiler cuts stages out of Cells that it inlines only after the cut."""

    @ms.lazy_inline  # type: ignore[untyped-decorator]
    def __init__(self, decoder: plain.Decoder, dp: int, tp: int, scale: float) -> None:
        super().__init__(decoder, dp, tp, scale)
