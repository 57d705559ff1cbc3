"""A pipeline without its way back: batches are evaluated, continued, and looked at layer by layer."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mindspore import Tensor, nn, ops

from harness.trainer.graph_cache import Graph
from harness.trainer.loss import inputs_of
from harness.trainer.parallel.messages import Messages
from harness.trainer.parallel.pipeline import Part, Stage
from harness.trainer.recorder import Recorder


class LastLogits(Graph):
    """The last part when it is asked for logits instead of a loss."""

    def __init__(self, part: Part, gather: nn.Cell | None) -> None:
        super().__init__(auto_prefix=False)
        self.part = part
        self.gather = gather

    def construct(self, x: Tensor, windows: Tensor, position: Tensor) -> Tensor:
        """As ``Part``, and a position → (rows, vocabulary) behind it."""
        features = ops.gather(self.part.features(x, windows), position, 1)
        logits = self.part.head(self.part.norm(features))
        return logits if self.gather is None else self.gather(logits)


class LastScores(Graph):
    """The last part when it is evaluated."""

    def __init__(self, part: Part, scores: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.part = part
        self.scores = scores

    def construct(self, x: Tensor, windows: Tensor) -> Tensor:
        """As ``Part`` → what ``Scores`` makes of the logits."""
        return self.scores(self.part.head(self.part.norm(self.part.features(x, windows))), windows)


class Layers(Graph):
    """What each layer of a part makes of a batch: the embedding where it is there, then block by block."""

    def __init__(self, embedding: nn.Cell | None, blocks: nn.CellList) -> None:
        super().__init__(auto_prefix=False)
        self.embedding, self.blocks = embedding, blocks

    def construct(self, x: Tensor, windows: Tensor) -> tuple[Tensor, ...]:
        """As ``Part`` → (rows, sequence, width) a layer."""
        found = []
        if self.embedding is not None:
            x = self.embedding(inputs_of(windows))
            found.append(x)
        for block in self.blocks:
            x = block(x)
            found.append(x)
        return tuple(found)


class Forward:
    """Sends batches through the pipeline without coming back: for evaluation and for sampling.

    Every rank of a replica ends with the last stage's result.
    """

    def __init__(self, stage: Stage, width: int, agree: nn.Cell, voice: float) -> None:
        """Takes a stage.

        Args:
            stage: this rank's.
            width: features of the residual stream.
            agree: adds up what the ranks of a replica have.
            voice: 1 on the ranks whose result counts, 0 on those that only repeat it.
        """
        self.stage, self.width, self.agree, self.voice = stage, width, agree, voice
        self.set_train = stage.set_train

    def output(self, windows: Tensor, last: Callable[[Tensor, Tensor], Tensor], shape: tuple[int, ...]) -> Tensor:
        """What the last part computes.

        Args:
            windows: (rows, sequence + 1).
            last: stands in for the last part: its input and the windows → float32 of ``shape``.
            shape: of the result.
        """
        found = self._run(windows, lambda part, x: last(x, windows) if part.is_last else part(x, windows))
        values = np.zeros(shape, np.float32) if found is None else found.asnumpy()
        return self.agree(Tensor(values * np.float32(self.voice)))

    def activations(self, windows: Tensor, layers: Sequence[Layers]) -> list[Tensor]:
        """What each layer of this rank makes of a batch, chunk by chunk.

        Args:
            windows: (rows, sequence + 1).
            layers: of each of this rank's parts.
        """
        found: list[Tensor] = []
        own = dict(zip(map(id, self.stage.parts), layers, strict=True))

        def compute(part: Part, x: Tensor) -> Tensor:
            outputs = own[id(part)](x, windows)
            found.extend(outputs)
            return outputs[-1]

        self._run(windows, compute)
        return found

    def _run(self, windows: Tensor, compute: Callable[[Part, Tensor], Any]) -> Any:
        rows, length = windows.shape
        messages = Messages((rows, length - 1, self.width), Recorder())
        x: Any = Tensor(np.zeros(messages.shape, np.float32))
        stage, schedule = self.stage, self.stage.schedule
        for chunk, part in enumerate(stage.parts):
            number = schedule.part(stage.number, chunk)
            if not part.is_first:
                x = messages.receive(stage.rank_of(schedule.place(number - 1)[0]), "F")
            x = compute(part, x)
            if not part.is_last:
                messages.send(x, stage.rank_of(schedule.place(number + 1)[0]), "F")
        messages.flush()
        return x if stage.parts[-1].is_last else None
