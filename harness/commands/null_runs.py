"""Runs of unchanged code, to learn how a machine scatters."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.errors import LaunchError, ScenarioError
from harness.gate.calibrate import FEWEST
from harness.launch.code import Code
from harness.measure import measure
from harness.run import Run
from harness.scenario import Scenario

TINY = Scenario(
    model="tiny", steps=20, batch=8, sequence=64, warmup_steps=2, eval_sequences=16, samples=8, sample_tokens=64
)
"""About ten seconds a run on two cores."""


def find_scenario(reference: str | None, root: Path) -> Scenario:
    """The scenario that ``package.module:NAME`` names; ``TINY`` for None.

    Raises:
        ScenarioError: there is no such scenario.
    """
    if reference is None:
        return TINY
    module, _, name = reference.partition(":")
    sys.path.insert(0, str(root))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ScenarioError(
            f"scenario {reference!r} can't be loaded: {error}; name one as package.module:NAME"
        ) from None
    if not isinstance(found, Scenario):
        raise ScenarioError(f"scenario {reference!r} is a {type(found).__name__}; name a harness.Scenario")
    return found


def null_runs(scenario: Scenario, hardware: str, root: Path, folder: Path, count: int) -> Iterator[Run]:
    """Trains the same scenario again and again.

    Raises:
        ScenarioError: it can't be trained, or ``count`` is too small.
        LaunchError: a rank failed.
    """
    if count < FEWEST:
        raise ScenarioError(f"{count} runs tell nothing of their spread; give --runs {FEWEST} or more")
    for number in range(count):
        try:
            yield measure(scenario, hardware, Code(root), folder / f"null-{number}")
        except LaunchError as error:
            raise LaunchError(f"run {number + 1} of {count} failed: {error}") from None
