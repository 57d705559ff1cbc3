"""``harness plan``: what a layout would need and cost."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def plan(
    scenario: Annotated[str, typer.Argument(help="package.module:NAME of a scenario.")],
    profile: Annotated[str, typer.Option("--profile", help="Hardware: a name that comes along, or a TOML file.")],
    search: Annotated[int | None, typer.Option("--search", min=1, help="Devices: list all layouts that fit.")] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Layouts that a search shows.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Work out memory, communication and step time of a layout, or list the layouts that fit; nothing is run."""
    from harness.commands.plan import plans
    from harness.report import plan as report
    from harness.report.terminal import WIDE

    found = plans(scenario, profile, search, Path.cwd())
    if as_json:
        typer.echo(json.dumps(report.as_json(found, top), indent=1))
        return
    console = Console(highlight=False, width=WIDE)
    if search is not None:
        console.print(f"{len(found)} layouts of {search} devices fit; the fastest:", markup=False)
        console.print(report.search_table(found, top))
    else:
        for table in (report.memory_table, report.time_table, report.traffic_table):
            console.print(table(found[0]))
    console.print(report.CAVEAT, markup=False)
