"""Compiles a scenario without devices and shows what its step communicates."""

from pathlib import Path

from harness.audit.compile import REPORT, audit
from harness.audit.graph import Graph
from harness.commands.null_runs import find_scenario
from harness.errors import ScenarioError
from harness.launch.code import Code
from harness.scenario import Scenario


def audit_scenario(
    reference: str, target: str, root: Path, folder: Path, ranks: str | None, deadline: float
) -> tuple[Scenario, dict[int, Graph], Path]:
    """Compiles what a reference names.

    Args:
        reference: ``package.module:NAME``.
        target: ``gpu`` or ``ascend``.
        root: of the project.
        folder: below which the audit's own is made.
        ranks: numbers with commas between, ``all``, or None for one of each stage.
        deadline: seconds a rank may take.

    Returns:
        The scenario, each rank's graph, and the file that holds all of it.

    Raises:
        ScenarioError: a rank is no number of the layout, or the scenario can't be audited.
    """
    scenario = find_scenario(reference, root)
    chosen = None if ranks is None else _numbers(ranks, scenario.layout.world_size)
    own = folder / scenario.hash
    _, graphs = audit(scenario, target, Code(root), own, chosen, deadline)
    return scenario, graphs, own / REPORT


def _numbers(text: str, size: int) -> list[int]:
    if text == "all":
        return list(range(size))
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ScenarioError(f"--ranks {text!r}: give numbers with commas between, or 'all'") from None
