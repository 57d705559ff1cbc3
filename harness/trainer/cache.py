"""Decoding token by token with the keys and values of all tokens before kept."""

import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from harness.corpus import Tokens
from harness.trainer.graph_cache import Graph
from harness.trainer.model import Attention, Decoder, product, rotate
from harness.trainer.parallel.tensor import Between


class CachedAttention(nn.Cell):
    """Attention of one new token to itself and to those before it."""

    def __init__(self, attention: Attention, rows: int, number: int) -> None:
        """Makes room for a row's tokens.

        Args:
            attention: gives the matrices.
            rows: that are decoded at once.
            number: of the block.
        """
        super().__init__(auto_prefix=False)
        self.attention = attention
        sequence = attention.mask.shape[0]
        self.shape = (rows, attention.heads, sequence, attention.features)
        # A line a head and position, so that a new token's are written in place.
        nothing = Tensor(np.zeros((rows * attention.heads * sequence, attention.features), np.float32))
        self.keys = Parameter(nothing, name=f"keys.{number}", requires_grad=False)
        self.values = Parameter(nothing.copy(), name=f"values.{number}", requires_grad=False)
        self.lines = Tensor(np.arange(0, nothing.shape[0], sequence, dtype=np.int32))
        self.scores = ops.BatchMatMul(transpose_b=True)

    def construct(self, x: Tensor, position: Tensor) -> Tensor:
        """(rows, width) of the token at ``position`` → the same."""
        inner = self.attention
        shape = (x.shape[0], inner.heads, 1, inner.features)
        cos, sin = ops.gather(inner.cos, position, 0), ops.gather(inner.sin, position, 0)
        query = rotate(inner.query(x).reshape(shape), cos, sin)
        key = rotate(inner.key(x).reshape(shape), cos, sin)
        value = inner.value(x)
        lines = self.lines + position
        keys = ops.scatter_update(self.keys, lines, key.reshape(-1, inner.features)).reshape(self.shape)
        values = ops.scatter_update(self.values, lines, value.reshape(-1, inner.features)).reshape(self.shape)
        scores = ops.cast(self.scores(ops.cast(query, inner.dtype), ops.cast(keys, inner.dtype)), ms.float32)
        hidden = ops.gather(inner.mask, position, 0)
        weights = ops.softmax(scores / math.sqrt(inner.features) + hidden, -1)
        mixed = product(weights, values, inner.dtype)
        return inner.out(mixed.reshape(x.shape[0], -1))

    def forget(self) -> None:
        """Empties the cache: what is hidden is multiplied by zero, which a NaN of a run gone bad would survive."""
        for cache in (self.keys, self.values):
            cache.set_data(Tensor(np.zeros(cache.shape, np.float32)))


class CachedDecoder(Graph):
    """A decoder that reads one token a row at a time."""

    def __init__(self, model: Decoder, rows: int, gather: nn.Cell | None = None) -> None:
        """Takes a model, whole or this rank's shard of it.

        Args:
            model: tokens to logits.
            rows: that are decoded at once.
            gather: puts logits together whose vocabulary is spread over ranks.
        """
        super().__init__(auto_prefix=False)
        self.model = model
        self.gather = gather
        self.blocks = list(model.blocks)
        attentions = [block.attention for block in self.blocks]
        self.between = [attention if isinstance(attention, Between) else None for attention in attentions]
        inner = [attention.layer if isinstance(attention, Between) else attention for attention in attentions]
        cached = [CachedAttention(cell, rows, number) for number, cell in enumerate(inner)]
        # The model's parameters keep their names.
        self.attentions = nn.CellList(cached, auto_prefix=False)
        self.set_train(False)

    def construct(self, tokens: Tensor, position: Tensor) -> Tensor:
        """(rows,) int32 tokens at ``position`` → (rows, vocabulary) logits of the next ones.

        Two axes all the way: of three, MindSpore multiplies every row by a copy of the matrix.
        """
        x = self.model.embedding(tokens)
        for number in range(len(self.blocks)):
            block, between = self.blocks[number], self.between[number]
            attended = self.attentions[number](block.attention_norm(x), position)
            x = x + (attended if between is None else between.sum(attended))
            x = x + block.feed_forward(block.feed_forward_norm(x))
        logits = self.model.head(self.model.norm(x))
        return logits if self.gather is None else self.gather(logits)

    def forget(self) -> None:
        """Begins anew."""
        for attention in self.attentions:
            attention.forget()


class Memory:
    """Feeds a cached decoder, so that each token goes through the model once."""

    def __init__(self, decoder: CachedDecoder) -> None:
        self.decoder = decoder
        self.fed = 0

    def forget(self) -> None:
        """Begins anew."""
        self.decoder.forget()
        self.fed = 0

    def next_logits(self, tokens: Tokens, filled: int) -> Tensor:
        """Logits behind the first ``filled`` tokens of (rows, sequence), of which those fed before must be the same."""
        logits = None
        for position in range(self.fed, filled):
            column = Tensor(np.ascontiguousarray(tokens[:, position]))
            logits = self.decoder(column, Tensor(position, ms.int32))
        self.fed = filled
        assert logits is not None
        return logits
