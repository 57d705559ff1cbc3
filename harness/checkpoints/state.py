"""What a rank goes on from beside its arrays: what it saw so far, and the state of the generators it draws from."""

from pydantic import BaseModel, ConfigDict, Field

from harness.evaluation import Evaluation


class RandomState(BaseModel):
    """Generators of the process, as plain numbers."""

    model_config = ConfigDict(extra="forbid")

    python: tuple[int, list[int], float | None]
    """As ``random.getstate``."""

    numpy: tuple[str, list[int], int, int, float]
    """As ``numpy.random.get_state``."""

    mindspore: list[int]
    """Bytes of ``mindspore.get_rng_state``. Operators that keep a state of their own in the kernel are not in it."""


class RankState(BaseModel):
    """One rank's."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")

    curves: dict[str, list[float]]
    """Since the first step."""

    evaluations: list[Evaluation] = Field(default_factory=list)
    checkpoint_evaluations: list[Evaluation] = Field(default_factory=list)
    samplings: list[list[list[int]]] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    alarms: dict[str, str] = Field(default_factory=dict)
    skipped: list[int] = Field(default_factory=list)
    """Steps whose update the guard left out."""

    random: RandomState
