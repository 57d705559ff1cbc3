"""Commands that train: what this machine scatters, what the gate catches, what one option changes."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from harness.cli.places import LATEST

Hardware = Annotated[str, typer.Option("--hardware", help="cpu, gpu or ascend.")]
OfScenario = Annotated[str | None, typer.Option("--scenario", help="package.module:NAME of a Scenario.")]


def calibrate(
    runs: Annotated[int, typer.Option("--runs", help="Runs of unchanged code.")] = 10,
    scenario: OfScenario = None,
    hardware: Hardware = "cpu",
) -> None:
    """Run unchanged code again and again; show how each metric scatters here, and tolerances that fit."""
    from harness import configuration
    from harness.commands.null_runs import find_scenario, null_runs
    from harness.gate.calibrate import as_toml
    from harness.gate.calibrate import calibrate as propose
    from harness.report.calibration import calibration_table
    from harness.report.terminal import WIDE

    console = Console(highlight=False)
    root = Path.cwd()
    policy = configuration.read(root).policy
    wanted = find_scenario(scenario, root)
    done = []
    for run in null_runs(wanted, hardware, root, LATEST.parent / "calibration", runs):
        done.append(run)
        console.print(f"run {len(done)} of {runs}")
    found = propose(done, policy)
    Console(highlight=False, width=WIDE).print(calibration_table(found))
    proposal = as_toml(found, done[0].machine, runs)
    if proposal:
        console.print("\nproposed for pyproject.toml, to be committed and reviewed:\n", markup=False)
        console.print(proposal, markup=False, soft_wrap=True)
    else:
        console.print("the tolerances in force fit this machine")


def selftest(
    runs: Annotated[int, typer.Option("--runs", help="Runs without a fault.")] = 6,
    confirm: Annotated[bool, typer.Option(help="Settle small slowdowns by running in turn: minutes.")] = True,
    scenario: OfScenario = None,
    hardware: Hardware = "cpu",
) -> None:
    """Plant faults into real runs here; exit with 1 if the gate misses what it claims to catch."""
    from harness import configuration
    from harness.commands.null_runs import find_scenario, null_runs
    from harness.commands.selftest import Bench, reach
    from harness.commands.selftest import selftest as findings

    console = Console(highlight=False)
    policy = configuration.read(Path.cwd()).policy
    bench = Bench(hardware, Path.cwd(), LATEST.parent / "selftest", policy)
    wanted = find_scenario(scenario, bench.root)
    nulls = list(null_runs(wanted, hardware, bench.root, bench.folder, runs))
    console.print(reach(nulls, policy), soft_wrap=True)
    broken = 0
    for finding in findings(bench, wanted, nulls, confirm):
        broken += finding.broken
        word = "caught" if finding.caught else "missed" if finding.claimed else "not caught, not claimed"
        word = {"caught": "ok", "missed": "FAILED"}.get(word, word) if finding.planted == "nothing" else word
        color = "red" if finding.broken else "green" if finding.caught else "yellow"
        console.print(f"[{color}]{word:<24}[/]{escape(f'{finding.planted:<26}{finding.outcome}')}", soft_wrap=True)
    if broken:
        console.print(f"the gate does not keep {broken} of its claims on this machine")
        raise typer.Exit(1)


def ab(
    scenario: Annotated[str, typer.Argument(help="package.module:NAME of a scenario.")],
    change: Annotated[list[str], typer.Option("--set", help="option=value, such as recompute=full or layout.dp=2.")],
    pairs: Annotated[int, typer.Option("--pairs", min=2, help="Times that both are run, in turn.")] = 4,
    share: Annotated[float, typer.Option("--share", help="Of the training data.")] = 0.01,
    together: Annotated[bool, typer.Option("--together", help="Allow several changes at once.")] = False,
    hardware: Hardware = "cpu",
) -> None:
    """Train a scenario with and without one change, in turn; compare step time, memory and loss."""
    from harness.commands.ab import changed, paired_runs, parse_changes, shortened
    from harness.commands.null_runs import find_scenario
    from harness.report.ab import comparison_table, loss_table
    from harness.report.terminal import WIDE

    root = Path.cwd()
    changes = parse_changes(change, together)
    plain = shortened(find_scenario(scenario, root), share, root)
    other = changed(plain, changes)
    console = Console(highlight=False, width=WIDE)
    console.print(f"{'; '.join(plain.differences(other))}, {pairs} pairs of {plain.steps} steps", markup=False)
    done = []
    for pair in paired_runs(plain, other, hardware, root, LATEST.parent / "ab", pairs):
        done.append(pair)
        console.print(f"pair {len(done)} of {pairs}")
    console.print(comparison_table(done))
    console.print(loss_table(done[0]))
