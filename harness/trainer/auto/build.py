"""Builds a scenario's step for AutoParallel."""

from pathlib import Path

import mindspore as ms
from mindspore import Tensor, nn
from mindspore.common.initializer import Normal, initializer
from mindspore.nn.utils import no_init_parameters
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import GradAccumulation, Pipeline

from harness.models import sizes_of
from harness.scenario import Scenario
from harness.trainer.auto.operators import InlinedLate, Loss
from harness.trainer.auto.step import GraphStep
from harness.trainer.model import Decoder, drawn, recompute

LARGE = 10**9
"""Parameters from which on no rank draws them all: MindSpore then draws each rank's pieces, other values than ours."""

CALL_DEPTH = 10_000
"""Deep models, recomputed, call deeper than the 1000 that the compiler allows by itself."""


def described(std: float, *shape: int) -> Tensor:
    """Initial values that take no memory until somebody asks for them."""
    return initializer(Normal(std), list(shape), ms.float32)


def build(scenario: Scenario, root: Path, with_values: bool = True) -> AutoParallel:
    """The step of a scenario under MindSpore's own parallelism.

    Args:
        scenario: ``engine`` is one of MindSpore's parallel modes.
        root: folder that a strategy file is relative to.
        with_values: whether parameters are given values; a graph can be compiled without.
    """
    if with_values:
        step = _step(scenario, with_values)
    else:
        with no_init_parameters():
            step = _step(scenario, with_values)
    ms.set_recursion_limit(CALL_DEPTH)
    layout = scenario.layout
    parallel = AutoParallel(step, parallel_mode=scenario.engine)
    parallel.dataset_strategy("full_batch")
    if layout.optimizer_sharding:
        parallel.hsdp(threshold=0, optimizer_level="level1")
    if layout.pp > 1:
        is_interleaved = scenario.pipeline_schedule == "interleaved"
        parallel.pipeline(stages=layout.pp, interleave=is_interleaved, scheduler="1f1b")
    if scenario.fused_reduction:
        kinds = ("allreduce", "allgather", "reducescatter")
        parallel.comm_fusion({kind: {"mode": "auto", "config": None} for kind in kinds})
    if scenario.strategy:
        parallel.load_param_strategy_file(str(root / scenario.strategy))
    if not with_values:
        parallel.no_init_parameters_in_compile()
    return parallel


def _step(scenario: Scenario, with_values: bool) -> GraphStep:
    layout = scenario.layout
    sizes = sizes_of(scenario.model)
    assert sizes is not None
    initial = drawn(scenario.seed) if with_values and sizes.parameters < LARGE else described
    decoder = Decoder(sizes, scenario.sequence, scenario.seed, scenario.precision, initial)
    loss = (InlinedLate if layout.pp > 1 else Loss)(decoder, layout.dp, layout.tp, 1.0 / scenario.tokens_per_step)
    recompute(loss, scenario.recompute)
    if layout.pp > 1:
        _stages(loss, layout.pp, scenario.chunks)
    parameters = ms.ParameterTuple(decoder.trainable_params())
    micro_batches = scenario.accumulation * scenario.micro_batches
    whole: nn.Cell = loss
    if layout.pp > 1:
        whole = Pipeline(loss, micro_batches)
    elif micro_batches > 1:
        whole = GradAccumulation(loss, micro_batches)
    step = GraphStep(whole, parameters, scenario, micro_batches)
    step.set_train()
    return step


def _stages(loss: Loss, stages: int, chunks: int) -> None:
    """Deals the blocks out in turn, embedding to the first stage, head and loss to the last."""
    size = len(loss.blocks) // (stages * chunks)
    loss.embedding.pipeline_stage = 0
    loss.head.pipeline_stage = stages - 1
    for number, block in enumerate(loss.blocks):
        block.pipeline_stage = number // size % stages
        if chunks > 1:
            block.pipeline_segment = number // (size * stages)
