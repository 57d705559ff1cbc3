"""The command line: parses, calls ``harness.commands``, prints."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.errors import BaselineError, HarnessError, HistoryError

if TYPE_CHECKING:
    from harness.commands.baseline import Change

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
baseline_app = typer.Typer(no_args_is_help=True, help="Approved values: list, diff, approve, prune.")
app.add_typer(baseline_app, name="baseline")

Session = Annotated[Path, typer.Option("--session", help="Folder of a session.")]
Baselines = Annotated[Path, typer.Option("--baselines", help="Folder of baselines.")]
Only = Annotated[str | None, typer.Option("--only", help="Part of, or glob on, test ids or baseline files.")]

NOTHING = "nothing to approve: every value of the session is as its baseline, or none was selected"

LATEST = Path(".harness/latest")
BASELINES = Path("baselines")


def main() -> None:
    """Runs the command line; the user's errors are one or two lines and exit code 2."""
    try:
        app()
    except HarnessError as error:
        Console(stderr=True, highlight=False).print(f"error: {escape(str(error))}", soft_wrap=True)
        raise SystemExit(2) from None


@app.callback()
def harness() -> None:
    """Validation and regression suites for large-model training on MindSpore."""


@app.command()
def doctor() -> None:
    """Show what this machine offers; exit with 1 and the remedy where something is wrong."""
    from harness.commands.doctor import examine

    console = Console(highlight=False)
    findings = examine(Path.cwd())
    table = Table("", "found", "to do", box=None)
    for finding in findings:
        table.add_row(
            finding.subject, escape(finding.found), f"[red]{escape(finding.fix)}[/]" if finding.fix else "[green]ok[/]"
        )
    console.print(table)
    if any(finding.fix for finding in findings):
        raise typer.Exit(1)


Hardware = Annotated[str, typer.Option("--hardware", help="cpu, gpu or ascend.")]
OfScenario = Annotated[str | None, typer.Option("--scenario", help="package.module:NAME of a Scenario.")]


@app.command()
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


@app.command()
def audit(
    scenario: Annotated[str | None, typer.Argument(help="package.module:NAME of a scenario.")] = None,
    setup: Annotated[bool, typer.Option("--setup", help="Make what compiling without a GPU needs; seconds.")] = False,
    target: Annotated[str, typer.Option("--target", help="gpu or ascend.")] = "gpu",
    ranks: Annotated[str | None, typer.Option("--ranks", help="Like 0,8, or all; else one of each stage.")] = None,
    parameters: Annotated[bool, typer.Option("--parameters", help="Show each parameter's shape too.")] = False,
    deadline: Annotated[float, typer.Option("--deadline", help="Seconds that compiling a rank may take.")] = 900.0,
) -> None:
    """Compile a layout of MindSpore's own engine without devices; list what its step communicates, and why."""
    from harness.audit.stand_in import set_up
    from harness.commands.audit import audit_scenario
    from harness.report.audit import communication_table, legend, parameter_table
    from harness.report.terminal import WIDE

    console = Console(highlight=False, width=WIDE)
    if setup:
        set_up()
        console.print("the front end for GPU is set up; no device is needed")
    if scenario is None:
        if not setup:
            raise HarnessError("name a scenario as package.module:NAME, or use --setup")
        return
    found, graphs, file = audit_scenario(scenario, target, Path.cwd(), LATEST.parent / "audits", ranks, deadline)
    for rank, graph in graphs.items():
        console.print(communication_table(graph, found.layout, rank))
        if parameters:
            console.print(parameter_table(graph))
    for line in legend(graphs, found.layout):
        console.print(line, markup=False)
    console.print(f"all of it: {file}", markup=False, soft_wrap=True)


@app.command()
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


@app.command()
def history(
    test: Annotated[str, typer.Option("--test", help="Part of, or glob on, test ids.")] = "",
    metric: Annotated[str, typer.Option("--metric", help="Part of, or glob on, names of metrics.")] = "",
    machine: Annotated[str, typer.Option("--machine", help="Part of, or glob on, keys of machines.")] = "",
    last: Annotated[int, typer.Option("--last", min=1, help="Runs that are looked at.")] = 200,
    plot: Annotated[bool, typer.Option("--plot", help="Plot each series.")] = False,
    url: Annotated[str | None, typer.Option("--history", help="Database (default: that of the last session).")] = None,
    baselines: Baselines = BASELINES,
) -> None:
    """List what was measured over time: drift from the approved value, and where the level changed."""
    from harness import configuration
    from harness.history import OFF, address
    from harness.history.courses import Filter, courses
    from harness.history.database import History
    from harness.report.terminal import WIDE
    from harness.report.trends import plot as draw
    from harness.report.trends import trend_table

    console = Console(highlight=False)
    place = address(url, LATEST.parent)
    database = History(place) if place else None
    if database is None or not database.exists:
        raise HistoryError(f"there is no history here ({OFF!r}, or no session yet): run a suite, or give --history URL")
    policy = configuration.read(Path.cwd()).policy
    found = courses(database, baselines, Filter(test, metric, machine), last, policy)
    if not found:
        console.print("no series of that name; without filters, all are listed")
        return
    Console(highlight=False, width=WIDE).print(trend_table(found, 60))
    for course in found if plot else ():
        console.print(f"\n{course.series.label}.{course.series.metric} of {course.series.test}", markup=False)
        console.print(draw(course, min(console.width, 100)), markup=False)


@baseline_app.command("list")
def list_baselines(baselines: Baselines = BASELINES) -> None:
    """List what is approved, by whom, when and why."""
    from harness.commands.baseline import stored
    from harness.report.terminal import WIDE

    table = Table("baseline", "run", "values", "machines", "approved", "reason", box=None)
    for path, content in stored(baselines):
        for label, record in content.runs.items():
            approved = record.approved
            table.add_row(
                escape(str(path)),
                escape(label),
                str(len(record.metrics) + len(record.curves)),
                str(len(record.machines)),
                escape(f"{approved.when[:10]} {approved.by}") if approved else "–",
                escape(approved.reason) if approved else "",
            )
    Console(highlight=False, width=WIDE).print(table)


@baseline_app.command()
def diff(session: Session = LATEST, baselines: Baselines = BASELINES, only: Only = None) -> None:
    """Show what approving a session's values would change; exit with 1 if anything."""
    from harness.commands.baseline import Selection, changes

    found = changes(session, baselines, Selection(only))
    _show(found)
    if found:
        raise typer.Exit(1)


def _show(found: "list[Change]") -> None:
    """A signed table of what moved, worst first; what stayed within tolerance is counted."""
    from harness.gate.verdict import Status
    from harness.report.terminal import WIDE, verdict_table

    console = Console(highlight=False)
    rows = sorted((row for change in found for row in change.verdicts), key=lambda row: row[1].rank)
    moved = [row for row in rows if row[1].status is not Status.PASS]
    if moved:
        Console(highlight=False, width=WIDE).print(verdict_table(moved, console.width))
    for changes in sorted({"; ".join(v.environment_changes) for _, v in rows if v.environment_changes}):
        still = sum(v.status is Status.PASS and "; ".join(v.environment_changes) == changes for _, v in rows)
        console.print(
            f"the environment changed ({escape(changes)}): {still} value(s) stayed within tolerance", soft_wrap=True
        )
    if not found:
        console.print(NOTHING)


@baseline_app.command()
def approve(
    reason: Annotated[str, typer.Option("--reason", help="Why the new values are right.")],
    session: Session = LATEST,
    baselines: Baselines = BASELINES,
    only: Only = None,
    by: Annotated[str | None, typer.Option("--by", help="Who approves (default: git's user.name).")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also values that are as approved.")] = False,
    tighten: Annotated[bool, typer.Option("--tighten", help="Only values that improved.")] = False,
    dirty: Annotated[bool, typer.Option("--dirty", help="Also with uncommitted changes.")] = False,
) -> None:
    """Show what moved, take it over as baselines, and name the files to commit."""
    from harness.commands.baseline import Selection, changes
    from harness.commands.baseline import approve as take_over

    if everything and tighten:
        raise BaselineError("--all takes everything and --tighten improvements alone; give one of them")
    selection = Selection(only, everything, tighten)
    _show(changes(session, baselines, selection))
    for change in take_over(session, baselines, reason, by, selection, dirty):
        Console(highlight=False).print(f"approved {escape(str(baselines / change.baseline))}", soft_wrap=True)


@baseline_app.command()
def prune(
    baselines: Baselines = BASELINES,
    delete: Annotated[bool, typer.Option("--delete", help="Delete them; otherwise they are only listed.")] = False,
) -> None:
    """List baselines whose test no longer exists; exit with 1 if any is left."""
    from harness.commands.baseline import orphans

    console = Console(highlight=False)
    found = orphans(baselines, Path.cwd())
    for path in found:
        if delete:
            (baselines / path).unlink()
        console.print(f"{'deleted' if delete else 'no test for'} {escape(str(baselines / path))}", soft_wrap=True)
    if found and not delete:
        raise typer.Exit(1)


if __name__ == "__main__":
    main()
