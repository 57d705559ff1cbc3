"""Model presets: the sizes of the decoder-only language models that scenarios name."""

from dataclasses import dataclass

from harness.errors import ScenarioError


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of a decoder with RMSNorm, rotary positions and SwiGLU feed-forward."""

    layers: int
    """Decoder blocks."""

    width: int
    """Features of the residual stream."""

    heads: int
    """Attention heads; ``width`` is their multiple."""

    feed_forward: int
    """Hidden features of the SwiGLU."""

    vocabulary: int = 256
    """Token ids; text is tokenized by bytes, so at least 256."""

    tied: bool = False
    """Whether the output projection is the transposed embedding."""

    def __post_init__(self) -> None:
        if self.width % (2 * self.heads):
            raise ScenarioError(
                f"width {self.width} is not a multiple of 2 × {self.heads} heads (rotary positions pair)"
            )
        if self.vocabulary < 256:
            raise ScenarioError(f"vocabulary {self.vocabulary} is smaller than the 256 byte tokens")

    @property
    def parameters(self) -> int:
        """Trainable values: embedding, head, and per block four projections, three SwiGLU matrices and two norms."""
        block = 4 * self.width**2 + 3 * self.width * self.feed_forward + 2 * self.width
        head = 0 if self.tied else self.width * self.vocabulary
        return self.vocabulary * self.width + self.layers * block + self.width + head


PRESETS = {
    "nano": ModelConfig(layers=2, width=64, heads=2, feed_forward=192),
    "deep": ModelConfig(layers=8, width=64, heads=4, feed_forward=192),
    "tiny": ModelConfig(layers=4, width=128, heads=4, feed_forward=384),
    "tiny-tied": ModelConfig(layers=4, width=128, heads=4, feed_forward=384, tied=True),
    "small": ModelConfig(layers=8, width=512, heads=8, feed_forward=1376),
    "7b": ModelConfig(layers=32, width=4096, heads=32, feed_forward=11008, vocabulary=32000),
    "13b": ModelConfig(layers=40, width=5120, heads=40, feed_forward=13824, vocabulary=32000),
}

_SIZES = "decoder:"


def sizes_of(model: str) -> ModelConfig | None:
    """The sizes of a scenario's model; None where it is the user's own function.

    Args:
        model: a preset, or sizes of one's own: ``decoder:layers=6,width=96,heads=6,feed_forward=256``, with
            ``vocabulary=512`` and ``tied=1`` if wanted.

    Raises:
        ScenarioError: a size is unknown, missing, no whole number, or does not fit the others.
    """
    if not model.startswith(_SIZES):
        return PRESETS.get(model)
    given: dict[str, int] = {}
    for item in model.removeprefix(_SIZES).split(","):
        name, _, value = item.partition("=")
        if name not in ModelConfig.__dataclass_fields__ or not value.isdecimal() or (name != "tied" and int(value) < 1):
            known = ", ".join(ModelConfig.__dataclass_fields__)
            raise ScenarioError(f"model={model!r}: {item!r} is no size; sizes are {known}, each =NUMBER")
        given[name] = int(value)
    missing = [name for name in ("layers", "width", "heads", "feed_forward") if name not in given]
    if missing:
        raise ScenarioError(f"model={model!r} lacks {', '.join(missing)}")
    tied = bool(given.pop("tied", 0))
    return ModelConfig(**given, tied=tied)
