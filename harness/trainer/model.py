"""A decoder-only language model in plain MindSpore: RMSNorm, rotary positions, SwiGLU."""

import math
from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from harness.models import ModelConfig
from harness.scenario import Scenario

Initial = Callable[..., Tensor]
"""Standard deviation, then the sizes of each axis → normally distributed initial values."""


def drawn(seed: int) -> Initial:
    """Values that depend on the seed alone, whatever the hardware."""
    random = np.random.Generator(np.random.PCG64(seed))
    return lambda std, *shape: Tensor(random.normal(0, std, shape).astype(np.float32))


class Matrix(nn.Cell):
    """x · weight, computed in ``dtype``, returned in float32."""

    def __init__(self, rows: int, columns: int, std: float, initial: Initial, dtype: ms.Type) -> None:
        super().__init__()
        self.dtype = dtype
        self.weight = Parameter(initial(std, rows, columns), name="weight")

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

    def __init__(self, config: ModelConfig, sequence: int, initial: Initial, dtype: ms.Type) -> None:
        super().__init__()
        self.heads = config.heads
        self.features = config.width // config.heads
        self.dtype = dtype
        width = config.width
        self.query = Matrix(width, width, 0.02, initial, dtype)
        self.key = Matrix(width, width, 0.02, initial, dtype)
        self.value = Matrix(width, width, 0.02, initial, dtype)
        self.out = Matrix(width, width, 0.02 / math.sqrt(2 * config.layers), initial, dtype)
        frequencies = 10000.0 ** (-np.arange(0, self.features, 2) / self.features)
        angles = np.outer(np.arange(sequence), frequencies).astype(np.float32)
        self.cos = Tensor(np.cos(angles))
        self.sin = Tensor(np.sin(angles))
        self.mask = Tensor(np.triu(np.full((sequence, sequence), -1e9, np.float32), 1))

    def construct(self, x: Tensor) -> Tensor:
        """(batch, sequence, width) → the same."""
        batch, sequence, _ = x.shape
        shape = (batch, sequence, self.heads, self.features)
        query = rotate(self.query(x).reshape(shape).swapaxes(1, 2), self.cos, self.sin)
        key = rotate(self.key(x).reshape(shape).swapaxes(1, 2), self.cos, self.sin)
        value = self.value(x).reshape(shape).swapaxes(1, 2)
        scores = product(query, key.swapaxes(2, 3), self.dtype) / math.sqrt(self.features) + self.mask
        mixed = product(ops.softmax(scores, -1), value, self.dtype)
        return self.out(mixed.swapaxes(1, 2).reshape(batch, sequence, -1))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turns each pair of features by an angle that grows with the position.

    Args:
        x: (…, positions, features).
        cos: of the angles, (positions, features / 2).
        sin: likewise.
    """
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return ops.concat((first * cos - second * sin, second * cos + first * sin), -1)


class FeedForward(nn.Cell):
    """SwiGLU (Shazeer 2020)."""

    def __init__(self, config: ModelConfig, initial: Initial, dtype: ms.Type) -> None:
        super().__init__()
        self.gate = Matrix(config.width, config.feed_forward, 0.02, initial, dtype)
        self.up = Matrix(config.width, config.feed_forward, 0.02, initial, dtype)
        self.down = Matrix(config.feed_forward, config.width, 0.02 / math.sqrt(2 * config.layers), initial, dtype)

    def construct(self, x: Tensor) -> Tensor:
        """(…, width) → (…, width)."""
        return self.down(ops.silu(self.gate(x)) * self.up(x))


class Block(nn.Cell):
    """Attention and feed-forward, each normalized before and added after."""

    def __init__(self, config: ModelConfig, sequence: int, initial: Initial, dtype: ms.Type) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(config.width)
        self.attention = Attention(config, sequence, initial, dtype)
        self.feed_forward_norm = RMSNorm(config.width)
        self.feed_forward = FeedForward(config, initial, dtype)

    def construct(self, x: Tensor) -> Tensor:
        """(batch, sequence, width) → the same."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Embedding(nn.Cell):
    """A vector for each token."""

    def __init__(self, vocabulary: int, width: int, initial: Initial) -> None:
        super().__init__()
        self.weight = Parameter(initial(0.02, vocabulary, width), name="weight")

    def construct(self, tokens: Tensor) -> Tensor:
        """(batch, sequence) int32 → (batch, sequence, width)."""
        return ops.gather(self.weight, tokens, 0)


class TiedHead(nn.Cell):
    """Logits by the transposed embedding."""

    def __init__(self, embedding: nn.Cell, dtype: ms.Type) -> None:
        super().__init__(auto_prefix=False)
        self.embedding = embedding
        self.dtype = dtype

    def construct(self, x: Tensor) -> Tensor:
        """(…, width) → (…, vocabulary)."""
        return product(x, self.embedding.weight.swapaxes(0, 1), self.dtype)


class Decoder(nn.Cell):
    """Tokens to logits."""

    def __init__(
        self,
        config: ModelConfig,
        sequence: int,
        seed: int,
        precision: str = "float32",
        initial: Initial | None = None,
    ) -> None:
        """Builds the model.

        Args:
            config: its sizes.
            sequence: tokens of a row.
            seed: of the initial values.
            precision: type of matrix products.
            initial: makes initial values in place of the seed.
        """
        super().__init__()
        initial = initial or drawn(seed)
        dtype = getattr(ms, precision)
        self.config = config
        self.dtype = dtype
        self.embedding = Embedding(config.vocabulary, config.width, initial)
        self.blocks = nn.CellList([Block(config, sequence, initial, dtype) for _ in range(config.layers)])
        self.norm = RMSNorm(config.width)
        if config.tied:
            # Put in without renaming: the embedding keeps the one name that it has.
            self.insert_child_to_cell("head", TiedHead(self.embedding, dtype))
        else:
            self.head = Matrix(config.width, config.vocabulary, 0.02, initial, dtype)

    def construct(self, tokens: Tensor) -> Tensor:
        """(batch, sequence) int32 → (batch, sequence, vocabulary) float32."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def recomputed_blocks(model: nn.Cell, which: str) -> list[nn.Cell]:
    """The blocks that ``Scenario.recompute`` means: ``none``, ``full``, or ``middle`` (not the first and the last)."""
    if which == "none":
        return []
    return list(model.blocks)[1:-1] if which == "middle" else list(model.blocks)


def batch_statistics(model: nn.Cell, scenario: Scenario) -> list[str]:
    """Warns of Cells that normalize over rows, where the rows of an update are not all in one place."""
    parts = {"accumulation": scenario.accumulation, "layout.dp": scenario.layout.dp}
    split = " × ".join(f"{name}={count}" for name, count in parts.items() if count > 1)
    found = [name for name, cell in model.cells_and_names() if "BatchNorm" in type(cell).__name__]
    if not split or not found:
        return []
    return [
        f"{', '.join(found[:3])} of model={scenario.model!r} normalizes over the rows of a part: with {split} it does "
        "not train what the whole batch would; use LayerNorm or RMSNorm, which look at one row at a time"
    ]


def recompute(model: nn.Cell, which: str) -> None:
    """Has the activations of some blocks dropped in forward and computed again in backward.

    Args:
        model: has ``blocks``; changed in place.
        which: as ``Scenario.recompute``.
    """
    for block in recomputed_blocks(model, which):
        block.recompute()
