"""``harness baseline …``: approved values."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.cli.places import BASELINES, LATEST
from harness.errors import BaselineError

if TYPE_CHECKING:
    from harness.commands.baseline import Change

app = typer.Typer(no_args_is_help=True, help="Approved values: list, diff, approve, prune.")

Session = Annotated[Path, typer.Option("--session", help="Folder of a session.")]


def _configured(context: typer.Context, value: Path) -> Path:
    """The folder that the project's settings name, where the command names none."""
    source = context.get_parameter_source("baselines")
    if source and source.name != "DEFAULT":
        return value
    from harness import configuration

    return Path(configuration.read(Path.cwd()).baselines)


Baselines = Annotated[Path, typer.Option("--baselines", callback=_configured, help="Folder of baselines.")]
Only = Annotated[str | None, typer.Option("--only", help="Part of, or glob on, test ids or baseline files.")]

NOTHING = "nothing to approve: every value of the session is as its baseline, or none was selected"


@app.command("list")
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


@app.command()
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


@app.command()
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


@app.command()
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
