"""Adopts what pytest-benchmark timed in a test's own process as a run that the gate can judge."""

import os
import platform
import statistics
from importlib import metadata
from typing import Protocol

from harness.environment import Environment, machine_key, memory, processor
from harness.run import Run
from harness.scenario import Scenario

TIME = "benchmark_time"


class Stats(Protocol):
    """Of ``pytest_benchmark.stats.Stats``."""

    data: list[float]
    """Seconds of each round."""


class Results(Protocol):
    """Of ``pytest_benchmark.stats.Metadata``."""

    stats: Stats


class Benchmark(Protocol):
    """Of the ``benchmark`` fixture."""

    disabled: bool
    stats: Results | None


def timed(benchmark: Benchmark, scenario: Scenario, hardware: str) -> Run:
    """The rounds of a benchmark as a run.

    Args:
        benchmark: the fixture, after it has timed something.
        scenario: what was timed; a baseline holds for this one alone.
        hardware: of the test.

    Returns:
        A run whose ``benchmark_time`` is the median of the rounds; undefined, with the reason, where there was none:
        pytest-benchmark is silent about it when it is disabled.
    """
    rounds = list(benchmark.stats.stats.data) if benchmark.stats is not None else []
    undefined = {}
    if not rounds:
        why = "pytest-benchmark is disabled, as under xdist" if benchmark.disabled else "the benchmark timed nothing"
        undefined[TIME] = f"{why}: run it with -n 0 and without --benchmark-disable"
    return Run(
        scenario=scenario.to_dict(),
        hardware=hardware,
        environment=Environment(
            hardware=hardware,
            architecture=platform.machine(),
            mindspore=metadata.version("mindspore"),
            data=scenario.data.partition(":")[0],
        ),
        machine=machine_key(processor(), processor(), len(os.sched_getaffinity(0)), memory()),
        metrics={TIME: statistics.median(rounds)} if rounds else {},
        undefined=undefined,
        curves={},
        step_seconds=rounds,
    )
