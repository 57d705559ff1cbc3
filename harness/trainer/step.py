"""One training step: gradients of each part, reduction over ranks, clipping, and the update."""

from collections.abc import Sequence
from typing import Protocol

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, nn, ops

from harness.corpus import Tokens
from harness.scenario import Scenario
from harness.trainer.device import wait
from harness.trainer.graph_cache import Graph
from harness.trainer.optimizer import as_shares, hyper_map, sum_of_squares
from harness.trainer.parallel.traffic import Collective
from harness.trainer.recorder import Recorder

FLOAT16_LOSS_SCALE = 1024.0
"""Keeps float16 gradients out of the subnormal range; taken out again before anything looks at them."""


MEASURED = Collective("AllReduce", 4 * 3)
"""Loss, tokens and gradient norm, among the ranks of a replica."""

AGREEMENTS = [Collective("AllReduce", 4), MEASURED, Collective("AllReduce", 4)]
"""Among them in a step: nothing, to wait for the slowest; what is measured; the update's norm."""


def loss_scale(scenario: Scenario) -> float:
    """Factor of the loss that is differentiated.

    Sums over a part's tokens are scaled to about a mean, so that float16 gradients keep their range.
    """
    part_tokens = scenario.tokens_per_step / (scenario.layout.dp * scenario.accumulation)
    return (FLOAT16_LOSS_SCALE if scenario.precision == "float16" else 1.0) / part_tokens


class Gradients(Graph):
    """Gradients of the summed, scaled loss of one part of the batch."""

    def __init__(self, loss: nn.Cell, scale: float) -> None:
        """Differentiates a loss.

        Args:
            loss: windows → loss sum, token count.
            scale: factor of the loss.
        """
        super().__init__(auto_prefix=False)
        self.loss = loss
        self.scale = scale
        self.weights = ms.ParameterTuple(loss.trainable_params())

    def scaled(self, windows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scaled loss to differentiate, then the loss and the token count as they are."""
        nll, tokens = self.loss(windows)
        return nll * self.scale, nll, tokens

    def construct(self, windows: Tensor) -> tuple[Tensor, ...]:
        """Loss sum, token count, then one gradient a parameter."""
        (_, nll, tokens), gradients = ms.value_and_grad(self.scaled, None, self.weights, has_aux=True)(windows)
        return (nll, tokens, *gradients)


class RecordedGradients:
    """``Gradients`` whose time is recorded as one piece of work."""

    def __init__(self, gradients: Gradients, recorder: Recorder) -> None:
        self.gradients, self.recorder = gradients, recorder

    def set_train(self, mode: bool = True) -> None:
        """As a Cell's."""
        self.gradients.set_train(mode)

    def __call__(self, windows: Tensor) -> tuple[Tensor, ...]:
        """As ``Gradients``."""
        with self.recorder.span("compute", "gradients"):
            sums: tuple[Tensor, ...] = self.gradients(windows)
            wait()
        return sums


class Add(Graph):
    """Adds two parts, item by item."""

    def __init__(self, items: int) -> None:
        super().__init__(auto_prefix=False)
        self.items = items

    def construct(self, *both: Tensor) -> tuple[Tensor, ...]:
        """The items of one part, then those of the other."""
        added: tuple[Tensor, ...] = hyper_map(ops.add, both[: self.items], both[self.items :])
        return added


class OfSums(Graph):
    """What is known of a step from the sums that were reduced over the replicas."""

    def __init__(self, agree: nn.Cell | None, scale: float, shares: Sequence[float], voice: float) -> None:
        """As ``Update``."""
        super().__init__(auto_prefix=False)
        self.agree = agree
        self.scale = scale
        self.shares = as_shares(shares, len(shares))
        self.voice = voice

    def squares(self, gradients: tuple[Tensor, ...]) -> Tensor:
        """(gradients,) sums of squares."""
        return ops.stack(hyper_map(sum_of_squares, gradients))

    def agreed(self, nll: Tensor, tokens: Tensor, squares: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Sums of this rank → mean loss, global norm, tokens, and the factor that makes a mean of a gradient's sum."""
        if self.agree is not None:
            agreed = self.agree(ops.stack([nll * self.voice, tokens * self.voice, squares]))
            nll, tokens, squares = agreed[0], agreed[1], agreed[2]
        weight = ops.maximum(tokens, 1.0)
        mean = 1.0 / (weight * self.scale)
        return nll / weight, ops.sqrt(squares) * mean, tokens, mean


class Measure(OfSums):
    """Mean loss and global gradient norm, before anything is updated."""

    def construct(self, *sums: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Sums over the replicas → what ``agreed`` makes of them, and the (gradients,) norms of this rank's own."""
        own = self.squares(sums[2:])
        loss, norm, tokens, mean = self.agreed(sums[0], sums[1], ops.reduce_sum(own * self.shares))
        return loss, norm, tokens, mean, ops.sqrt(own) * mean


class Update(OfSums):
    """Clips what was reduced over the replicas, then updates: the norm is that of the whole batch's gradient."""

    def __init__(
        self,
        optimizer: nn.Cell,
        agree: nn.Cell | None,
        clip_norm: float | None,
        scale: float,
        shares: Sequence[float] | None = None,
        voice: float = 1.0,
    ) -> None:
        """Puts an update together.

        Args:
            optimizer: has one sum of squares for its whole update.
            agree: adds up what the ranks of one replica contribute; None where one rank holds all of it.
            clip_norm: largest norm; None clips nothing.
            scale: factor that the gradients carry.
            shares: how much each gradient of this rank counts in the norm; 1 by default.
            voice: 1 on the ranks whose loss and token count are counted, 0 on those that only repeat them.
        """
        super().__init__(agree, scale, [1.0] * len(optimizer.parameters) if shares is None else shares, voice)
        self.optimizer = optimizer
        self.clip_norm = clip_norm

    def construct(self, rate: Tensor, step: Tensor, *sums: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Sums over the replicas (loss, tokens, gradients) → mean loss, global gradient norm, update norm, tokens."""
        gradients = sums[2:]
        squares = ops.reduce_sum(self.squares(gradients) * self.shares)
        loss, norm, tokens, mean = self.agreed(sums[0], sums[1], squares)
        factor = mean
        if self.clip_norm is not None:
            factor = mean * ops.minimum(self.clip_norm / (norm + 1e-6), 1.0)
        moved = self.optimizer(rate, step, factor, gradients)
        if self.agree is not None:
            moved = self.agree(moved.reshape(1)).reshape(())
        return loss, norm, ops.sqrt(moved), tokens


class ComputesGradients(Protocol):
    """``Gradients``, or what takes its place where the model is spread over ranks."""

    def __call__(self, windows: Tensor) -> tuple[Tensor, ...]:
        """Loss sum, token count, then one gradient a parameter, of one part of this rank's share of the batch."""

    def set_train(self, mode: bool = True) -> object:
        """As a Cell's."""


class Sentry(Protocol):
    """Stands before each update."""

    def __call__(self, step: int, loss: float, norm: float, windows: Tensor, norms: npt.NDArray[np.float32], /) -> bool:
        """Whether the update may be made, given global norm, this rank's windows and the norms of its gradients."""

    def traffic(self) -> list[Collective]:
        """What it sends each time."""


class Tracer(Protocol):
    """Writes gradients down."""

    @property
    def is_looking(self) -> bool:
        """Whether those of the present step are wanted."""

    def gradients(self, means: list[npt.NDArray[np.float32]]) -> None:
        """Takes the gradient of the batch's mean loss for each parameter of this rank."""


class TrainStep:
    """A whole step on this rank's share of the batch: every part's gradients, added up, reduced, then one update."""

    def __init__(
        self,
        gradients: ComputesGradients,
        reductions: Sequence[nn.Cell],
        update: Update,
        accumulation: int,
        recorder: Recorder,
    ) -> None:
        """Takes the pieces of a step.

        Args:
            gradients: of one part.
            reductions: applied in turn to the sums of all parts; each sends ``traffic()``.
            update: of the parameters.
            accumulation: number of parts.
            recorder: told of each piece.
        """
        self.gradients = gradients
        self.reductions = list(reductions)
        self.update = update
        self.accumulation = accumulation
        self.recorder = recorder
        self.tokens_seen = 0
        """That counted in all steps so far, over all ranks."""

        self.sentry: Sentry | None = None
        """Asked before each update whether it may be made; nobody by default."""

        self.tracer: Tracer | None = None
        """Shown the gradients of the steps that it looks at; nobody by default."""

        self.measure = Measure(update.agree, update.scale, update.shares.asnumpy().tolist(), update.voice)
        self.nothing = Tensor(np.zeros(1, np.float32))
        self.add = Add(len(update.optimizer.parameters) + 2)
        for piece in (gradients, *self.reductions, self.add, update):
            piece.set_train()

    def __call__(self, windows: Tensor, rate: float, step: int) -> tuple[float, float, float]:
        """Trains on (rows, sequence + 1) windows, rows being this rank's share.

        Returns:
            Token-weighted mean loss in nats over all ranks, global gradient norm before clipping, norm of the update.
        """
        self.recorder.begin(step)
        sums: tuple[Tensor, ...] | None = None
        for part in windows.chunk(self.accumulation) if self.accumulation > 1 else (windows,):
            new = self.gradients(part)
            sums = new if sums is None else self.add(*sums, *new)
        assert sums is not None
        for reduction in self.reductions:
            sums = self._reduce(reduction, sums)
        if self.update.agree is not None:
            with self.recorder.span("wait", "for the slowest"):
                self.update.agree(self.nothing).asnumpy()
        traces = self.tracer is not None and self.tracer.is_looking
        if traces or self.sentry is not None:
            *measured, norms = (value.asnumpy() for value in self.measure(*sums))
            loss, norm, tokens, mean = (float(value) for value in measured)
            if self.tracer is not None and traces:
                self.tracer.gradients([gradient.asnumpy() * np.float32(mean) for gradient in sums[2:]])
            if self.sentry is not None and not self.sentry(step, loss, norm, windows, norms):
                self.tokens_seen += int(tokens)
                return loss, norm, 0.0
        with self.recorder.span("compute", "update"):
            values = self.update(Tensor(rate, ms.float32), Tensor(step, ms.float32), *sums)
            loss, norm, update_norm, tokens = (float(value.asnumpy()) for value in values)
        self.tokens_seen += int(tokens)
        return loss, norm, update_norm

    def traffic(self) -> list[Collective]:
        """The collectives of one step beside those of its gradients, however many parts it accumulates."""
        found = [each for reduction in self.reductions for each in reduction.traffic()]
        if self.update.agree is not None:
            found += AGREEMENTS
        if self.sentry is not None:
            found += ([MEASURED] if self.update.agree is not None else []) + self.sentry.traffic()
        return [*found, *self.update.optimizer.traffic()]

    def _reduce(self, reduction: nn.Cell, sums: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        wait()
        size = sum(found.size for found in reduction.traffic())
        with self.recorder.span("collective", type(reduction).__name__, size=size):
            reduced: tuple[Tensor, ...] = reduction(*sums)
            wait()
        return reduced


def as_tensor(windows: Tokens) -> Tensor:
    """Windows of tokens as MindSpore takes them."""
    return Tensor(np.ascontiguousarray(windows, np.int32))
