"""A short paired experiment: one scenario with and without one change, in turn."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import corpus
from harness.errors import ScenarioError
from harness.launch.code import Code
from harness.measure import measure
from harness.metrics.speed import WARMUP_STEPS
from harness.report.ab import Pair
from harness.run import Run
from harness.scenario import Scenario

FEWEST_STEPS = WARMUP_STEPS + 6
"""A run shorter than this tells no step time."""


def parse_changes(texts: Sequence[str], together: bool) -> dict[str, Any]:
    """Reads ``option=value`` texts.

    Args:
        texts: an option is a scenario's field, or ``layout.dp`` and the like; a value is JSON, or else a text.
        together: whether more than one is allowed.

    Raises:
        ScenarioError: there is none, one has no value, or there are several and nobody asked for it.
    """
    found: dict[str, Any] = {}
    for text in texts:
        option, equals, value = text.partition("=")
        if not option or not equals:
            raise ScenarioError(f"--set {text!r} changes nothing; write it as option=value")
        try:
            found[option] = json.loads(value)
        except json.JSONDecodeError:
            found[option] = value
    if not found:
        raise ScenarioError("nothing is changed; give --set option=value")
    if len(found) > 1 and not together:
        raise ScenarioError(
            f"{len(found)} changes at once ({', '.join(found)}) can't be told apart: try one, or add --together"
        )
    return found


def shortened(scenario: Scenario, share: float, root: Path) -> Scenario:
    """The scenario over a share of its training split, without evaluation.

    Raises:
        ScenarioError: the share is none.
        DataError: the data can't be read.
    """
    if not 0 < share <= 1:
        raise ScenarioError(f"--share {share:g} is no share; give more than 0 and at most 1")
    windows = len(corpus.load(scenario, root).train)
    steps = max(FEWEST_STEPS, math.ceil(share * windows / scenario.batch))
    return scenario.replace(
        steps=steps, warmup_steps=min(scenario.warmup_steps, steps // 4), eval_every=0, eval_sequences=0, samples=0
    )


def changed(scenario: Scenario, changes: dict[str, Any]) -> Scenario:
    """The scenario with changes.

    Raises:
        ScenarioError: an option is unknown, a value can't work, or nothing differs afterwards.
    """
    layout = scenario.layout.to_dict()
    fields: dict[str, Any] = {}
    for option, value in changes.items():
        outer, _, inner = option.partition(".")
        if outer == "layout" and inner:
            layout[inner] = value
            fields["layout"] = layout
        else:
            fields[option] = value
    found = scenario.replace(**fields)
    if found == scenario:
        raise ScenarioError(f"{', '.join(changes)}: the scenario has this value already, so nothing would be compared")
    return found


def paired_runs(
    plain: Scenario, other: Scenario, hardware: str, root: Path, folder: Path, pairs: int
) -> Iterator[Pair]:
    """Trains both in turn, A B B A …, so that a machine that slows down steadily favours neither.

    Each pair has a seed of its own, the same on both sides, so that losses of several beginnings are compared.

    Raises:
        ScenarioError: they can't be trained.
        LaunchError: a rank failed.
    """
    for number in range(pairs):
        runs: dict[str, Run] = {}
        sides = {"a": plain, "b": other}
        for side in "ab" if number % 2 == 0 else "ba":
            scenario = sides[side].replace(seed=sides[side].seed + number)
            runs[side] = measure(scenario, hardware, Code(root), folder / side)
        yield runs["a"], runs["b"]
