"""A decoder-only language model in plain MindSpore: RMSNorm, rotary positions, SwiGLU."""

import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from harness.models import ModelConfig


class Matrix(nn.Cell):
    """x · weight, computed in ``dtype``, returned in float32."""

    def __init__(self, rows: int, columns: int, std: float, random: np.random.Generator, dtype: ms.Type) -> None:
        super().__init__()
        self.dtype = dtype
        self.weight = Parameter(Tensor(random.normal(0, std, (rows, columns)).astype(np.float32)), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        """(…, rows) → (…, columns)."""
        return product(x, self.weight, self.dtype)


def product(a: Tensor, b: Tensor, dtype: ms.Type) -> Tensor:
    """Matrix product in ``dtype``; the result is float32."""
    if dtype == ms.float32:
        return ops.matmul(a, b)
    return ops.cast(ops.matmul(ops.cast(a, dtype), ops.cast(b, dtype)), ms.float32)


class RMSNorm(nn.Cell):
    """Root-mean-square normalization (Zhang & Sennrich 2019)."""

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = Parameter(Tensor(np.ones(width, np.float32)), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        """(…, width) → (…, width)."""
        return x * ops.rsqrt(ops.mean(ops.square(x), -1, True) + self.epsilon) * self.weight


class Attention(nn.Cell):
    """Causal self-attention with rotary positions (Su et al. 2021)."""

    def __init__(self, config: ModelConfig, sequence: int, random: np.random.Generator, dtype: ms.Type) -> None:
        super().__init__()
        self.heads = config.heads
        self.features = config.width // config.heads
        self.dtype = dtype
        width = config.width
        self.query = Matrix(width, width, 0.02, random, dtype)
        self.key = Matrix(width, width, 0.02, random, dtype)
        self.value = Matrix(width, width, 0.02, random, dtype)
        self.out = Matrix(width, width, 0.02 / math.sqrt(2 * config.layers), random, dtype)
        frequencies = 10000.0 ** (-np.arange(0, self.features, 2) / self.features)
        angles = np.outer(np.arange(sequence), frequencies).astype(np.float32)
        self.cos = Tensor(np.cos(angles))
        self.sin = Tensor(np.sin(angles))
        self.mask = Tensor(np.triu(np.full((sequence, sequence), -1e9, np.float32), 1))

    def construct(self, x: Tensor) -> Tensor:
        """(batch, sequence, width) → the same."""
        batch, sequence, width = x.shape
        shape = (batch, sequence, self.heads, self.features)
        query = self.rotate(self.query(x).reshape(shape).swapaxes(1, 2))
        key = self.rotate(self.key(x).reshape(shape).swapaxes(1, 2))
        value = self.value(x).reshape(shape).swapaxes(1, 2)
        scores = product(query, key.swapaxes(2, 3), self.dtype) / math.sqrt(self.features) + self.mask
        mixed = product(ops.softmax(scores, -1), value, self.dtype)
        return self.out(mixed.swapaxes(1, 2).reshape(batch, sequence, width))

    def rotate(self, x: Tensor) -> Tensor:
        """Turns each pair of features by an angle that grows with the position."""
        half = self.features // 2
        first, second = x[..., :half], x[..., half:]
        return ops.concat((first * self.cos - second * self.sin, second * self.cos + first * self.sin), -1)


class FeedForward(nn.Cell):
    """SwiGLU (Shazeer 2020)."""

    def __init__(self, config: ModelConfig, random: np.random.Generator, dtype: ms.Type) -> None:
        super().__init__()
        self.gate = Matrix(config.width, config.feed_forward, 0.02, random, dtype)
        self.up = Matrix(config.width, config.feed_forward, 0.02, random, dtype)
        self.down = Matrix(config.feed_forward, config.width, 0.02 / math.sqrt(2 * config.layers), random, dtype)

    def construct(self, x: Tensor) -> Tensor:
        """(…, width) → (…, width)."""
        return self.down(ops.silu(self.gate(x)) * self.up(x))


class Block(nn.Cell):
    """Attention and feed-forward, each normalized before and added after."""

    def __init__(self, config: ModelConfig, sequence: int, random: np.random.Generator, dtype: ms.Type) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(config.width)
        self.attention = Attention(config, sequence, random, dtype)
        self.feed_forward_norm = RMSNorm(config.width)
        self.feed_forward = FeedForward(config, random, dtype)

    def construct(self, x: Tensor) -> Tensor:
        """(batch, sequence, width) → the same."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Cell):
    """Tokens to logits."""

    def __init__(self, config: ModelConfig, sequence: int, seed: int, precision: str = "float32") -> None:
        super().__init__()
        random = np.random.Generator(np.random.PCG64(seed))
        dtype = getattr(ms, precision)
        self.tied = config.tied
        self.dtype = dtype
        table = random.normal(0, 0.02, (config.vocabulary, config.width)).astype(np.float32)
        self.embedding = Parameter(Tensor(table), name="embedding")
        self.blocks = nn.CellList([Block(config, sequence, random, dtype) for _ in range(config.layers)])
        self.norm = RMSNorm(config.width)
        if not config.tied:
            self.head = Matrix(config.width, config.vocabulary, 0.02, random, dtype)

    def construct(self, tokens: Tensor) -> Tensor:
        """(batch, sequence) int32 → (batch, sequence, vocabulary) float32."""
        x = ops.gather(self.embedding, tokens, 0)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.tied:
            return product(x, self.embedding.swapaxes(0, 1), self.dtype)
        return self.head(x)


def recompute(model: Decoder, which: str) -> None:
    """Marks blocks whose activations are dropped in forward and computed again in backward.

    Args:
        model: the decoder; changed in place.
        which: ``none``, ``full``, or ``middle`` (all but the first and the last block).
    """
    blocks = {"none": [], "full": list(model.blocks), "middle": list(model.blocks)[1:-1]}[which]
    for block in blocks:
        block.recompute()
