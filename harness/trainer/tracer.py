"""Writes down, at chosen steps, what a rank holds: rows, parameters, activations, gradients."""

import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from mindspore import Tensor

from harness import trace
from harness.errors import ResultsError
from harness.metrics.sketch import signs, sketch
from harness.trace import Layer, Piece, RankStep
from harness.trainer.parallel.explicit import Engine

if TYPE_CHECKING:
    from harness.trainer.loop import Training

Floats = npt.NDArray[np.float32]


class Tracer:
    """One rank's."""

    def __init__(self, training: "Training", engine: Engine, folder: Path) -> None:
        self.training, self.engine = training, engine
        self.path = trace.file(folder, training.rank)
        self.every = training.scenario.trace_every
        self._step: RankStep | None = None

    def before(self, step: int, windows: Tensor) -> None:
        """Looks at what a step begins with, where it is one of those asked for.

        Args:
            step: its number.
            windows: (rows, sequence + 1) of this rank.
        """
        if step % self.every:
            return
        engine = self.engine
        rows = windows.asnumpy()
        first = engine.place.replica * len(rows)
        tokens = [Piece(place=first + i, digest=_digest(row), norm=0.0, sketch=[]) for i, row in enumerate(rows)]
        layers = [Layer(kind="rows", name="rows", pieces=tokens)]
        layers += [self._shard("parameter", p.name, p.asnumpy()) for p in engine.parameters]
        for name, values in engine.activations(windows).items():
            layers.append(Layer(kind="activation", name=name, pieces=_of_rows(name, values, first)))
        self._step = RankStep(rank=self.training.rank, step=step, layers=layers)

    def gradients(self, means: list[Floats]) -> None:
        """Adds the gradients of the step that was begun, and writes it down.

        Args:
            means: gradient of each of this rank's parameters, of the batch's mean loss, before clipping.
        """
        if self._step is None:
            return
        named = zip(self.engine.parameters, means, strict=True)
        self._step.layers += [self._shard("gradient", parameter.name, mean) for parameter, mean in named]
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(self._step.model_dump_json() + "\n")
        except OSError as error:
            raise ResultsError(f"{self.path.name} can't be written: {error.strerror}; free the disk") from None
        self._step = None

    @property
    def is_looking(self) -> bool:
        """Whether the gradients of the present step are wanted."""
        return self._step is not None

    def _shard(self, kind: trace.Kind, name: str, values: Floats) -> Layer:
        axis = self.engine.cut.get(name)
        shards = 1 if axis is None else self.training.scenario.layout.tp
        shard = 0 if axis is None else self.engine.place.shard
        piece = Piece(
            place=shard,
            digest=_digest(values),
            norm=_norm(values),
            sketch=sketch(name, values, axis or 0, shard, shards),
        )
        return Layer(kind=kind, name=name, shards=shards, pieces=[piece])


def _digest(values: npt.NDArray[np.generic]) -> int:
    return zlib.crc32(np.ascontiguousarray(values).tobytes())


def _norm(values: Floats) -> float:
    return float(np.sqrt(np.square(values, dtype=np.float64).sum()))


_signs = cache(signs)


def _of_rows(name: str, values: Floats, first: int) -> list[Piece]:
    """(rows, …) activations, row by row: the same whichever rank, part of the batch or micro-batch a row is in."""
    flat = values.reshape(len(values), -1)
    sketches = flat.astype(np.float64) @ _signs(name, flat.shape[1:]).T
    return [
        Piece(place=first + i, digest=_digest(row), norm=_norm(row), sketch=sketches[i].tolist())
        for i, row in enumerate(flat)
    ]
