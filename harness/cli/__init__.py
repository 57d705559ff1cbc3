"""The command line: parses, calls ``harness.commands``, prints."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.cli import baseline, evaluation, reading, report, trials
from harness.cli.places import BASELINES, LATEST
from harness.errors import HarnessError, HistoryError

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(baseline.app, name="baseline")
app.add_typer(evaluation.app, name="eval")
app.add_typer(report.app, name="report")
app.command()(trials.calibrate)
app.command()(trials.selftest)
app.command()(trials.ab)
app.command()(reading.plan)
app.command()(reading.profile)
app.command()(reading.convert)
app.command()(reading.run)
app.command()(reading.compare)
app.command()(reading.checkpoints)
app.command()(reading.diverge)


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
def history(
    test: Annotated[str, typer.Option("--test", help="Part of, or glob on, test ids.")] = "",
    metric: Annotated[str, typer.Option("--metric", help="Part of, or glob on, names of metrics.")] = "",
    machine: Annotated[str, typer.Option("--machine", help="Part of, or glob on, keys of machines.")] = "",
    last: Annotated[int, typer.Option("--last", min=1, help="Runs that are looked at.")] = 200,
    plot: Annotated[bool, typer.Option("--plot", help="Plot each series.")] = False,
    url: Annotated[str | None, typer.Option("--history", help="Database (default: that of the last session).")] = None,
    baselines: baseline.Baselines = BASELINES,
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
