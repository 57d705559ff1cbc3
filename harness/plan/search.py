"""What one layout needs and costs, and which layouts of so many devices fit, best first."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from harness.errors import PlanError, ScenarioError
from harness.layout import Layout
from harness.plan.cost import Cost, cost
from harness.plan.memory import Memory, memory, sizes
from harness.plan.profile import Profile
from harness.scenario import Scenario

GIB = 2**30


@dataclass(frozen=True)
class Plan:
    """What a scenario needs of each stage's devices, and what a step takes."""

    scenario: Scenario
    profile: Profile
    stages: tuple[Memory, ...]
    cost: Cost

    @property
    def fullest(self) -> Memory:
        """Of the stage that needs most."""
        return max(self.stages, key=lambda stage: stage.total)

    @property
    def needed(self) -> float:
        """GiB of the fullest device."""
        return self.fullest.total / GIB

    @property
    def missing(self) -> float:
        """GiB that a device lacks; 0 where all fits."""
        return max(0.0, self.needed - self.profile.memory)


def plan(scenario: Scenario, profile: Profile) -> Plan:
    """Plans one scenario.

    Raises:
        PlanError: the model's sizes are not known.
    """
    stages = tuple(memory(scenario, stage) for stage in range(scenario.layout.pp))
    return Plan(scenario, profile, stages, cost(scenario, profile))


def search(scenario: Scenario, profile: Profile, devices: int) -> list[Plan]:
    """The layouts of so many devices that fit, fastest first.

    Varied are the layout, the number of micro-batches and recomputation; model, batch and everything else stay. Tensor
    parallelism stays within a node.

    Raises:
        PlanError: no layout takes so many devices, or none fits; the message says how much the nearest lacks.
    """
    found = [plan(each, profile) for each in _variants(scenario, profile, devices)]
    if not found:
        raise PlanError(
            f"no layout of {devices} devices divides model={scenario.model!r} and batch={scenario.batch}: change the "
            "batch to a multiple of the replicas, or the number of devices"
        )
    fitting = [each for each in found if not each.missing]
    if not fitting:
        nearest = min(found, key=lambda each: each.missing)
        raise PlanError(
            f"no layout of {devices} devices fits into {profile.memory:g} GiB: {describe(nearest.scenario)} comes "
            f"nearest and lacks {nearest.missing:.1f} GiB a device; use more devices or a smaller model"
        )
    return sorted(fitting, key=lambda each: (each.cost.step_time, each.needed))


def describe(scenario: Scenario) -> str:
    """A layout in a line."""
    layout = scenario.layout
    parts = [f"dp {layout.dp} × tp {layout.tp} × pp {layout.pp}"]
    if layout.optimizer_sharding:
        parts.append("sharded optimizer")
    if layout.pp > 1:
        parts.append(f"{scenario.micro_batches} micro-batches")
    if scenario.recompute != "none":
        parts.append(f"recompute {scenario.recompute}")
    return ", ".join(parts)


def _variants(scenario: Scenario, profile: Profile, devices: int) -> Iterator[Scenario]:
    layers = sizes(scenario).layers
    for layout in _layouts(devices, profile.node_devices):
        if layers % layout.pp or scenario.batch % layout.dp:
            continue
        parts = _divisors(scenario.batch // layout.dp)
        is_pipeline = layout.pp > 1
        for part, recompute in itertools.product(parts, ("none", "full")):
            # A model of the user's sizes may still not be divisible by tp, or by pp × chunks.
            with suppress(ScenarioError):
                yield scenario.replace(
                    layout=layout,
                    micro_batches=part if is_pipeline else 1,
                    accumulation=1 if is_pipeline else part,
                    recompute=recompute,
                    pipeline_schedule=scenario.pipeline_schedule if is_pipeline else "1f1b",
                    chunks=scenario.chunks if is_pipeline else 1,
                )


def _layouts(devices: int, most_shards: int) -> Iterator[Layout]:
    for tp in (divisor for divisor in _divisors(devices) if divisor <= most_shards):
        for pp in _divisors(devices // tp):
            dp = devices // (tp * pp)
            for sharding in (False, True) if dp > 1 else (False,):
                yield Layout(dp, tp, pp, sharding)


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]
