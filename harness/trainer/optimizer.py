"""The optimizers, what they remember, and the learning rate."""

from collections.abc import Sequence

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from harness.scenario import Scenario
from harness.trainer.parallel.traffic import Collective

MOMENTS = "first_moment", "second_moment"
"""What the states of a parameter are named: this, a point, and the parameter's name."""

BETAS = 0.9, 0.999
EPSILON = 1e-8

_reshape = ops.Reshape()
_adamw = ops.AdamWeightDecay()
_product_with_transposed = ops.MatMul(transpose_b=True)

LARGE = 2**16
"""Elements from which on a sum of squares is reduced pairwise."""


# Graphs map a function over all parameters: MindSpore takes four times as long to compile a loop.
hyper_map = ops.HyperMap()


def sum_of_squares(x: Tensor) -> Tensor:
    """Σ x².

    A product adds thousands of float32 terms in a row, which is exact enough for small tensors and spares them an
    operator; a reduction adds pairwise. (ops.L2Loss adds all in a row: at 10⁸ elements it loses a third of the sum.)
    """
    if x.size > LARGE:
        return ops.reduce_sum(ops.square(x))
    flat = _reshape(x, (1, -1))
    return _reshape(_product_with_transposed(flat, flat), ())


def adamw(
    corrected: tuple[Tensor, Tensor, Tensor],
    scale: Tensor,
    parameter: Parameter,
    first: Parameter,
    second: Parameter,
    decay: float,
    gradient: Tensor,
) -> Tensor:
    """Updates one parameter in place; what comes out stands for its being done.

    Args:
        corrected: as ``AdamW.corrected``.
        scale: factor on the gradient.
        parameter: what is updated.
        first: its first moment.
        second: its second moment.
        decay: its decay.
        gradient: its gradient.
    """
    rate, epsilon, decay_factor = corrected
    return _adamw(parameter, first, second, rate, *BETAS, epsilon, decay * decay_factor, gradient * scale)


def measured_adamw(
    corrected: tuple[Tensor, Tensor, Tensor],
    scale: Tensor,
    parameter: Parameter,
    first: Parameter,
    second: Parameter,
    decay: float,
    gradient: Tensor,
) -> Tensor:
    """As ``adamw``; returns the sum of squares of the update."""
    before = parameter * 1.0
    done = adamw(corrected, scale, parameter, first, second, decay, gradient)
    return sum_of_squares(ops.depend(parameter, done) - before)


class AdamW(nn.Cell):
    """Adam with bias-corrected moments and decoupled decay (Loshchilov & Hutter 2019, algorithm 2).

    MindSpore's fused kernel knows no bias correction; it is brought in through the rate, epsilon and decay it is given:
    lr·(m̂/(√v̂ + ε) + λp) = lr'·(m/(√v + ε') + λ'p) with r = √(1 − β₂ᵗ), c = 1 − β₁ᵗ, lr' = lr·r/c, ε' = ε·r, λ' = λ·c/r.
    """

    def __init__(
        self, parameters: ms.ParameterTuple, decays: list[float], shares: Sequence[float] | None = None
    ) -> None:
        """Begins with moments of zero.

        Args:
            parameters: what is updated.
            decays: decay of each.
            shares: how much each one's update counts in the sum of squares; 1 by default.
        """
        super().__init__(auto_prefix=False)
        self.parameters = parameters
        self.shares = as_shares(shares, len(parameters))
        self.first = parameters.clone(MOMENTS[0], init="zeros")
        self.second = parameters.clone(MOMENTS[1], init="zeros")
        self.decays = tuple(decays)

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
            Sum of squares of the update, by their shares.
        """
        update = ops.partial(measured_adamw, self.corrected(rate, step), scale)
        squares = hyper_map(update, self.parameters, self.first, self.second, self.decays, gradients)
        return ops.reduce_sum(ops.stack(squares) * self.shares)

    def corrected(self, rate: Tensor, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """lr', ε' and the factor of every decay."""
        correction = 1.0 - ops.pow(BETAS[0], step)
        root = ops.sqrt(1.0 - ops.pow(BETAS[1], step))
        return rate * root / correction, EPSILON * root, correction / root


def sgd(rate: Tensor, scale: Tensor, parameter: Parameter, decay: float, gradient: Tensor) -> Tensor:
    """Updates one parameter in place; returns the sum of squares of the update."""
    update = rate * (gradient * scale + decay * parameter)
    return ops.depend(sum_of_squares(update), ops.assign_sub(parameter, update))


class SGD(nn.Cell):
    """Gradient descent with decoupled decay."""

    def __init__(
        self, parameters: ms.ParameterTuple, decays: list[float], shares: Sequence[float] | None = None
    ) -> None:
        """Keeps no states; arguments as in AdamW."""
        super().__init__(auto_prefix=False)
        self.parameters = parameters
        self.shares = as_shares(shares, len(parameters))
        self.decays = tuple(decays)

    def states(self) -> list[Parameter]:
        """Nothing."""
        return []

    def traffic(self) -> list[Collective]:
        """Nothing is sent."""
        return []

    def construct(self, rate: Tensor, step: Tensor, scale: Tensor, gradients: tuple[Tensor, ...]) -> Tensor:
        """Updates every parameter in place and returns the sum of squares of the update; arguments as in AdamW."""
        update = ops.partial(sgd, rate, scale)
        squares = hyper_map(update, self.parameters, self.decays, gradients)
        return ops.reduce_sum(ops.stack(squares) * self.shares)


def as_shares(shares: Sequence[float] | None, count: int) -> Tensor:
    """(count,) float32; ones where nobody says otherwise."""
    return Tensor(np.array([1.0] * count if shares is None else shares, np.float32))


def subject(name: str) -> str:
    """The parameter that a state belongs to; a parameter's own name as it is."""
    first, _, rest = name.partition(".")
    return rest if first in MOMENTS else name


def decays_of(parameters: ms.ParameterTuple, decay: float) -> list[float]:
    """Decay of each parameter: matrices decay, norms do not."""
    return [decay if len(p.shape) > 1 else 0.0 for p in parameters]


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
