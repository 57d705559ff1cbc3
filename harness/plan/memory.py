"""How much memory the fullest device of a layout needs."""

from dataclasses import dataclass

from harness.errors import PlanError
from harness.models import ModelConfig, sizes_of
from harness.scenario import Scenario
from harness.schedule import schedule_of

FLOAT32 = 4
"""Bytes of every value: parameters, sums and results of products stay float32 in any precision."""

# Least squares over the pool's peaks of 27 runs on CPU in the graph's order (docs/planning.md).
WIDTH, SHARDED_WIDTH, FEED_FORWARD, SCORES, LOGITS = 6.0, 14.0, 5.5, 1.5, 5.2
"""Values that a block keeps for its backward, a token: per feature of the residual stream, where every tensor-parallel
shard has all of them and where it has its own; per feature of the feed-forward; per head and token looked at. And what
the head and the loss keep a token and entry of the vocabulary."""

GRADIENTS = 2
"""Times the parameters: their gradients, and what computing them copies."""

UPDATE = {"adamw": 3.25, "sgd": 2.25}
"""Times the parameters, while they are updated."""


@dataclass(frozen=True)
class Memory:
    """What a device holds, in bytes."""

    parameters: float
    optimizer: float
    """States, where this device keeps them."""

    gradients: float
    activations: float
    """What forward keeps for backward, at its peak; inputs of micro-batches in flight are part of it."""

    update: float
    """What updating needs, when the activations are gone."""

    @property
    def work(self) -> float:
        """The larger of what computing gradients and what updating needs."""
        return max(self.gradients + self.activations, self.update)

    @property
    def total(self) -> float:
        """At the peak of a step."""
        return self.parameters + self.optimizer + self.work


def sizes(scenario: Scenario) -> ModelConfig:
    """The sizes of a scenario's model.

    Raises:
        PlanError: it is the user's own.
    """
    found = sizes_of(scenario.model)
    if found is None:
        raise PlanError(f"model={scenario.model!r} can't be planned: its sizes are not known; use 'decoder:layers=…'")
    return found


def stage_parameters(scenario: Scenario, stage: int) -> int:
    """Values of one shard of a stage: matrices are cut over tensor parallelism, norms are not."""
    model, layout = sizes(scenario), scenario.layout
    block = (4 * model.width**2 + 3 * model.width * model.feed_forward) // layout.tp + 2 * model.width
    table = model.vocabulary * model.width // layout.tp
    last = stage == layout.pp - 1
    # A tied table is also the head's: the last stage holds a copy where it is not the first.
    tables = (stage == 0) + (last and not (model.tied and layout.pp == 1))
    return model.layers // layout.pp * block + tables * table + (model.width if last else 0)


def memory(scenario: Scenario, stage: int) -> Memory:
    """What a device of a stage needs.

    Raises:
        PlanError: the model's sizes are not known.
    """
    layout = scenario.layout
    parameters = FLOAT32 * stage_parameters(scenario, stage)
    states = 2 * parameters if scenario.optimizer == "adamw" else 0
    sums = parameters if scenario.accumulation > 1 else 0
    return Memory(
        parameters=parameters,
        optimizer=states / (layout.dp if layout.optimizer_sharding else 1),
        gradients=GRADIENTS * parameters + sums,
        activations=FLOAT32 * _activations(scenario, stage),
        update=UPDATE[scenario.optimizer] * parameters + sums,
    )


def pool_peak(scenario: Scenario) -> float:
    """MiB of MindSpore's memory pool at its peak on CPU, where parameters and states lie outside of it."""
    return max(memory(scenario, stage).work for stage in range(scenario.layout.pp)) / 2**20


def _activations(scenario: Scenario, stage: int) -> float:
    """Values that a stage keeps at its peak."""
    model, layout = sizes(scenario), scenario.layout
    tokens = scenario.micro_batch_rows * scenario.sequence
    block = tokens * (
        WIDTH * model.width
        + (SHARDED_WIDTH * model.width + FEED_FORWARD * model.feed_forward) / layout.tp
        + SCORES * model.heads / layout.tp * scenario.sequence
    )
    stream = tokens * model.width
    head = LOGITS * tokens * model.vocabulary / layout.tp if stage == layout.pp - 1 else 0.0
    layers = model.layers // (layout.pp * scenario.chunks)
    again = recomputed(scenario, stage, layers)
    kept = layers - again + (1 if again else 0)
    part = kept * block + (layers - kept) * stream
    if layout.pp == 1:
        return part + head
    in_flight = schedule_of(scenario).in_flight(stage)
    if scenario.engine == "explicit":
        # A part keeps its input alone, and the one that goes backward is computed again.
        return in_flight * (stream if stage else tokens) + part + head
    return in_flight * part + head


def recomputed(scenario: Scenario, stage: int, layers: int) -> int:
    """Blocks, of so many in a row that a stage holds, whose activations are computed again."""
    if scenario.recompute == "none":
        return 0
    ends = (stage == 0) + (stage == scenario.layout.pp - 1)
    return max(0, layers - (ends if scenario.recompute == "middle" else 0))
