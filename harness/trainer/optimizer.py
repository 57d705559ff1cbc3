"""The optimizers, what they remember, and the learning rate."""

from collections.abc import Sequence

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from harness.scenario import Scenario
from harness.trainer.parallel.traffic import Collective

MOMENTS = "first_moment", "second_moment"
"""What the states of a parameter are named: this, a point, and the parameter's name."""

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
            Sum of squares of the update, by their shares.
        """
        corrected = self.corrected(rate, step)
        squares = []
        for i in range(len(self.parameters)):
            parameter = self.parameters[i]
            before = parameter * 1.0
            done = self.apply(i, corrected, gradients[i] * scale)
            squares.append(sum_of_squares(ops.depend(parameter, done) - before))
        return ops.reduce_sum(ops.stack(squares) * self.shares)

    def corrected(self, rate: Tensor, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """lr', ε' and the factor of every decay."""
        correction = 1.0 - ops.pow(self.beta1, step)
        root = ops.sqrt(1.0 - ops.pow(self.beta2, step))
        return rate * root / correction, self.epsilon * root, correction / root

    def apply(self, i: int, corrected: tuple[Tensor, Tensor, Tensor], gradient: Tensor) -> Tensor:
        """Updates parameter ``i`` in place; what comes out stands for its being done."""
        rate, epsilon, decay_factor = corrected
        return self.kernel(
            self.parameters[i],
            self.first[i],
            self.second[i],
            rate,
            self.beta1,
            self.beta2,
            epsilon,
            self.decays[i] * decay_factor,
            gradient,
        )


class SGD(nn.Cell):
    """Gradient descent with decoupled decay."""

    def __init__(
        self, parameters: ms.ParameterTuple, decays: list[float], shares: Sequence[float] | None = None
    ) -> None:
        """Keeps no states; arguments as in AdamW."""
        super().__init__(auto_prefix=False)
        self.parameters = parameters
        self.shares = as_shares(shares, len(parameters))
        self.decays = decays

    def states(self) -> list[Parameter]:
        """Nothing."""
        return []

    def traffic(self) -> list[Collective]:
        """Nothing is sent."""
        return []

    def construct(self, rate: Tensor, step: Tensor, scale: Tensor, gradients: tuple[Tensor, ...]) -> Tensor:
        """Updates every parameter in place and returns the sum of squares of the update; arguments as in AdamW."""
        squares = []
        for i in range(len(self.parameters)):
            update = rate * (gradients[i] * scale + self.decays[i] * self.parameters[i])
            squares.append(sum_of_squares(update))
            ops.assign_sub(self.parameters[i], update)
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
