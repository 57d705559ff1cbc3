"""One training step: gradients of each part, reduction over ranks, clipping, and the update."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from harness.corpus import IGNORED, Tokens
from harness.scenario import Scenario
from harness.trainer.parallel.data import Reduce
from harness.trainer.parallel.traffic import Collective

FLOAT16_LOSS_SCALE = 1024.0
"""Keeps float16 gradients out of the subnormal range; taken out again before anything looks at them."""


LARGE = 2**16
"""Elements from which on a sum of squares is reduced pairwise."""


def sum_of_squares(x: Tensor) -> Tensor:
    """Σ x².

    A product adds thousands of float32 terms in a row, which is exact enough for small tensors and spares them an
    operator; a reduction adds pairwise. (ops.L2Loss adds all in a row: at 10⁸ elements it loses a third of the sum.)
    """
    if x.size > LARGE:
        return ops.reduce_sum(ops.square(x))
    flat = x.reshape(1, -1)
    return ops.matmul(flat, flat.swapaxes(0, 1)).reshape(())


class TokenLoss(nn.Cell):
    """Cross-entropy summed over the tokens that count."""

    def __init__(self, model: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.model = model

    def construct(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """(rows, sequence + 1) int32 → sum of negative log-likelihoods in nats, number of tokens."""
        inputs = ops.maximum(windows[:, :-1], 0)
        targets = windows[:, 1:].reshape(-1)
        logits = self.model(inputs)
        logits = logits.reshape(-1, logits.shape[-1])
        nll = ops.cross_entropy(logits, ops.maximum(targets, 0), reduction="none")
        counted = ops.cast(targets != IGNORED, ms.float32)
        return ops.reduce_sum(nll * counted), ops.reduce_sum(counted)


class Gradients(nn.Cell):
    """Gradients of the summed, scaled loss of one part of the batch."""

    def __init__(self, model: nn.Cell, scale: float) -> None:
        super().__init__(auto_prefix=False)
        self.loss = TokenLoss(model)
        self.scale = scale
        weights = ms.ParameterTuple(model.trainable_params())
        self.gradients = ms.value_and_grad(self.scaled, None, weights, has_aux=True)

    def scaled(self, windows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scaled loss to differentiate, then the loss and the token count as they are."""
        nll, tokens = self.loss(windows)
        return nll * self.scale, nll, tokens

    def construct(self, windows: Tensor) -> tuple[Tensor, ...]:
        """Loss sum, token count, then one gradient a parameter."""
        (_, nll, tokens), gradients = self.gradients(windows)
        return (nll, tokens, *gradients)


class Add(nn.Cell):
    """Adds two parts, item by item."""

    def __init__(self, items: int) -> None:
        super().__init__(auto_prefix=False)
        self.items = items

    def construct(self, *both: Tensor) -> tuple[Tensor, ...]:
        """The items of one part, then those of the other."""
        return tuple([both[i] + both[self.items + i] for i in range(self.items)])


class AdamW(nn.Cell):
    """Adam with bias-corrected moments and decoupled decay (Loshchilov & Hutter 2019, algorithm 2).

    MindSpore's fused kernel knows no bias correction; it is brought in through the rate, epsilon and decay it is given:
    lr·(m̂/(√v̂ + ε) + λp) = lr'·(m/(√v + ε') + λ'p) with r = √(1 − β₂ᵗ), c = 1 − β₁ᵗ, lr' = lr·r/c, ε' = ε·r, λ' = λ·c/r.
    """

    def __init__(self, parameters: ms.ParameterTuple, decays: list[float]) -> None:
        """Begins with moments of zero.

        Args:
            parameters: what is updated.
            decays: decay of each.
        """
        super().__init__(auto_prefix=False)
        self.parameters = parameters
        self.first = _zeros_like(parameters, "first_moment")
        self.second = _zeros_like(parameters, "second_moment")
        self.decays = decays
        self.kernel = ops.AdamWeightDecay()
        self.beta1, self.beta2, self.epsilon = 0.9, 0.999, 1e-8

    def states(self) -> list[Parameter]:
        """What it remembers from step to step."""
        return [*self.first, *self.second]

    def traffic(self) -> list[Collective]:
        """Nothing is sent."""
        return []

    def construct(self, rate: Tensor, step: Tensor, scale: Tensor, gradients: tuple[Tensor, ...]) -> Tensor:
        """Updates every parameter in place.

        Args:
            rate: learning rate.
            step: number of this update, from 1, float32.
            scale: factor on every gradient.
            gradients: one a parameter.

        Returns:
            Sum of squares of the whole update.
        """
        correction = 1.0 - ops.pow(self.beta1, step)
        root = ops.sqrt(1.0 - ops.pow(self.beta2, step))
        corrected_rate = rate * root / correction
        epsilon = self.epsilon * root
        decay_factor = correction / root
        squares = []
        for i in range(len(self.parameters)):
            parameter = self.parameters[i]
            before = parameter * 1.0
            done = self.kernel(
                parameter,
                self.first[i],
                self.second[i],
                corrected_rate,
                self.beta1,
                self.beta2,
                epsilon,
                self.decays[i] * decay_factor,
                gradients[i] * scale,
            )
            squares.append(sum_of_squares(ops.depend(parameter, done) - before))
        return ops.reduce_sum(ops.stack(squares))


class SGD(nn.Cell):
    """Gradient descent with decoupled decay."""

    def states(self) -> list[Parameter]:
        """Nothing."""
        return []

    def traffic(self) -> list[Collective]:
        """Nothing is sent."""
        return []

    def __init__(self, parameters: ms.ParameterTuple, decays: list[float]) -> None:
        """Keeps no states.

        Args:
            parameters: what is updated.
            decays: decay of each.
        """
        super().__init__(auto_prefix=False)
        self.parameters = parameters
        self.decays = decays

    def construct(self, rate: Tensor, step: Tensor, scale: Tensor, gradients: tuple[Tensor, ...]) -> Tensor:
        """Updates every parameter in place and returns the sum of squares of the update; arguments as in AdamW."""
        squares = []
        for i in range(len(self.parameters)):
            update = rate * (gradients[i] * scale + self.decays[i] * self.parameters[i])
            squares.append(sum_of_squares(update))
            ops.assign_sub(self.parameters[i], update)
        return ops.reduce_sum(ops.stack(squares))


def _zeros_like(parameters: ms.ParameterTuple, name: str) -> ms.ParameterTuple:
    return ms.ParameterTuple(
        [Parameter(Tensor(np.zeros(p.shape, np.float32)), name=f"{name}.{p.name}") for p in parameters]
    )


def decays_of(parameters: ms.ParameterTuple, decay: float) -> list[float]:
    """Decay of each parameter: matrices decay, norms do not."""
    return [decay if len(p.shape) > 1 else 0.0 for p in parameters]


class Update(nn.Cell):
    """Reduces over ranks, then clips, then updates: the norm is that of the whole batch's gradient."""

    def __init__(self, optimizer: nn.Cell, reduce: nn.Cell, clip_norm: float | None, scale: float) -> None:
        super().__init__(auto_prefix=False)
        self.optimizer = optimizer
        self.reduce = reduce
        self.clip_norm = clip_norm
        self.scale = scale

    def construct(self, rate: Tensor, step: Tensor, *sums: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sums of this rank (loss, tokens, gradients) → mean loss, global gradient norm, update norm."""
        sums = self.reduce(*sums)
        tokens = ops.maximum(sums[1], 1.0)
        gradients = sums[2:]
        mean = 1.0 / (tokens * self.scale)
        norm = ops.sqrt(ops.reduce_sum(ops.stack([sum_of_squares(gradient) for gradient in gradients]))) * mean
        factor = mean
        if self.clip_norm is not None:
            factor = mean * ops.minimum(self.clip_norm / (norm + 1e-6), 1.0)
        update_squares = self.optimizer(rate, step, factor, gradients)
        return sums[0] / tokens, norm, ops.sqrt(update_squares)


class TrainStep:
    """A whole step on this rank's share of the batch: every part's gradients, added up, then one update."""

    def __init__(self, model: nn.Cell, scenario: Scenario, optimizer: nn.Cell | None = None) -> None:
        """Builds the parts of a step.

        Args:
            model: what is trained.
            scenario: how.
            optimizer: in place of the scenario's own, where that is spread over ranks.
        """
        parameters = ms.ParameterTuple(model.trainable_params())
        # Sums over a part's tokens are scaled to about a mean, so that float16 gradients keep their range.
        part_tokens = scenario.tokens_per_step / (scenario.layout.dp * scenario.accumulation)
        scale = (FLOAT16_LOSS_SCALE if scenario.precision == "float16" else 1.0) / part_tokens
        if optimizer is None:
            plain = {"adamw": AdamW, "sgd": SGD}[scenario.optimizer]
            optimizer = plain(parameters, decays_of(parameters, scenario.weight_decay))
        reduce = Reduce(parameters, scenario.layout.dp, scenario.fused_reduction)
        self.accumulation = scenario.accumulation
        self.gradients = Gradients(model, scale)
        self.add = Add(len(parameters) + 2)
        self.update = Update(optimizer, reduce, scenario.clip_norm, scale)
        for cell in (self.gradients, self.add, self.update):
            cell.set_train()

    def traffic(self) -> list[Collective]:
        """The collectives of one step of this rank, however many parts it accumulates."""
        return [*self.update.reduce.traffic(), *self.update.optimizer.traffic()]

    def __call__(self, windows: Tensor, rate: float, step: int) -> tuple[float, float, float]:
        """Trains on (rows, sequence + 1) windows, rows being this rank's share.

        Returns:
            Token-weighted mean loss in nats over all ranks, global gradient norm before clipping, norm of the update.
        """
        sums: tuple[Tensor, ...] | None = None
        for part in windows.chunk(self.accumulation) if self.accumulation > 1 else (windows,):
            new = self.gradients(part)
            sums = new if sums is None else self.add(*sums, *new)
        assert sums is not None
        values = self.update(Tensor(rate, ms.float32), Tensor(step, ms.float32), *sums)
        loss, norm, update_norm = (float(value.asnumpy()) for value in values)
        return loss, norm, update_norm


def learning_rate(scenario: Scenario, step: int) -> float:
    """Rate of update ``step`` (from 1): linear warm-up, then as the schedule says."""
    peak = scenario.learning_rate
    if step <= scenario.warmup_steps:
        return peak * step / scenario.warmup_steps
    rest = scenario.steps - scenario.warmup_steps
    share = (step - scenario.warmup_steps) / rest
    if scenario.schedule == "linear":
        return peak * (1.0 - share)
    if scenario.schedule == "cosine":
        return peak * (0.55 + 0.45 * float(np.cos(np.pi * share)))
    return peak


def as_tensor(windows: Tokens) -> Tensor:
    """Windows of tokens as MindSpore takes them."""
    return Tensor(np.ascontiguousarray(windows, np.int32))
