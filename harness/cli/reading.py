"""Commands that train nothing: plans of layouts, profiles of runs that were, and conversions of text."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.cli.baseline import Baselines
from harness.cli.places import BASELINES, LATEST


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


def profile(
    folder: Annotated[Path, typer.Argument(help="What mindspore.profiler left, or a run's folder.")],
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps that were profiled.")] = 1,
    top: Annotated[int, typer.Option("--top", min=1, help="Operators that are shown.")] = 10,
) -> None:
    """Show the operators that a step calls, and where its time goes where the hardware reports it."""
    from harness.commands.profile import read_profile
    from harness.report.profile import profile_tables, share_line, step_table
    from harness.report.terminal import WIDE

    found = read_profile(folder, steps)
    console = Console(highlight=False, width=WIDE)
    for table in profile_tables(found.operators, top):
        console.print(table)
    if found.steps:
        console.print(step_table(found.steps))
        console.print(share_line(found.shares), soft_wrap=True)


def run(
    place: Annotated[Path, typer.Option("--from-log", help="Log, TensorBoard folder, or a run's folder.")],
    label: Annotated[str, typer.Option("--label", help="Names the training among the baselines.")],
    hardware: Annotated[str, typer.Option("--hardware", help="cpu, gpu or ascend.")] = "ascend",
    machine: Annotated[str, typer.Option("--machine", help="Its kind: times are judged by its own.")] = "unknown",
    mindspore: Annotated[str, typer.Option("--mindspore", help="Version it trained with.")] = "unknown",
    architecture: Annotated[str, typer.Option("--architecture", help="Of its processors.")] = "unknown",
    ranks: Annotated[int, typer.Option("--ranks", min=1, help="Devices that it took.")] = 1,
    tokens: Annotated[int | None, typer.Option("--tokens-per-step", min=1, help="For the throughput.")] = None,
    url: Annotated[str | None, typer.Option("--history", help="Database (default: beside the results).")] = None,
    baselines: Baselines = BASELINES,
) -> None:
    """Judge a finished training by its baseline; 1 regressed, 3 inconclusive, 4 no baseline, 5 invalid."""
    from harness.commands.run import Finished, exit_status, judge
    from harness.devices import check_hardware
    from harness.history import address
    from harness.report.terminal import failure_text, session_summary
    from harness.results import new_folder

    finished = Finished(place, label, check_hardware(hardware), machine, mindspore, architecture, ranks, tokens)
    folder, history = new_folder(LATEST.parent), address(url, LATEST.parent)
    results, problems = judge(finished, Path.cwd(), folder, baselines, history)
    console = Console(highlight=False)
    for found in results.runs.values():
        problems = [*found.warnings, *problems]
    for line in problems:
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    typer.echo(session_summary(results, console.width, console.is_terminal, verbose=True), nl=False)
    failing = [verdict for _, verdict in results.verdicts if verdict.fails]
    if failing:
        typer.echo(failure_text(failing))
    raise typer.Exit(exit_status(results))


def compare(
    one: Annotated[Path, typer.Argument(help="A run's folder, or a log: MindFormers, or JSON Lines with a step.")],
    other: Annotated[Path, typer.Argument(help="Another, that is judged by the first.")],
    relative: Annotated[float | None, typer.Option("--relative", min=0.0, help="Tolerance of all curves.")] = None,
    allowed: Annotated[int, typer.Option("--allowed", min=0, help="Steps of a curve that may deviate.")] = 0,
    last: Annotated[int | None, typer.Option("--until", min=1, help="Last step that is compared.")] = None,
) -> None:
    """Compare curves by step; exit with 1 where one deviates, 3 where one ends earlier, 5 where one is no number."""
    from harness import comparison
    from harness.readers.place import read
    from harness.report.comparison import curve_table
    from harness.report.terminal import WIDE

    console = Console(highlight=False, width=WIDE)
    first, second = read(one), read(other)
    for place, side in ((one, first), (other, second)):
        for note in side.notes():
            console.print(f"{place.name}: {note}", markup=False, soft_wrap=True)
    if last is not None:
        first, second = comparison.until(first, last), comparison.until(second, last)
    found = comparison.compare_readings(first, second, relative, allowed)
    console.print(curve_table(found))
    for each in found:
        if each.verdict.reason:
            console.print(f"{each.name}: {each.verdict.reason}", markup=False, soft_wrap=True)
    ends = comparison.ends(first, second)
    if ends[0] != ends[1]:
        console.print(f"the first ends with step {ends[0]}, the second with step {ends[1]}", markup=False)
    if code := comparison.status(found, ends):
        raise typer.Exit(code)


def checkpoints(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or its checkpoints.")],
) -> None:
    """List a run's checkpoints and whether each is whole; exit with 1 where none can be gone on from."""
    from harness.checkpoints.store import FOLDER, Store
    from harness.report.checkpoints import checkpoint_table

    place = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    table, usable = checkpoint_table(Store(place))
    Console(highlight=False).print(table)
    if not usable:
        raise typer.Exit(1)


def diverge(
    one: Annotated[Path, typer.Argument(help="Folder of a run with trace_every=N.")],
    other: Annotated[Path, typer.Argument(help="Folder of another, of whatever version, mode or layout.")],
    tolerance: Annotated[float, typer.Option("--tolerance", min=0.0, help="Relative distance that is none.")] = 1e-5,
) -> None:
    """Say the first step, rank and layer where two runs part, and by how much; exit with 1 where they do."""
    from harness import trace
    from harness.diverge import compare
    from harness.report.divergence import layer_table, verdict
    from harness.report.terminal import WIDE

    found = compare(trace.read(one), trace.read(other), tolerance)
    console = Console(highlight=False, width=WIDE)
    for line in verdict(found, tolerance):
        console.print(line, markup=False, soft_wrap=True)
    table = layer_table(found)
    if table:
        console.print(table)
    if found.parting:
        raise typer.Exit(1)


def convert(
    data: Annotated[str, typer.Argument(help="text, text:FILE or records:FILE, as in a scenario.")],
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
    sequence: Annotated[int, typer.Option("--sequence", help="Tokens of a row, as in the scenarios that read it.")],
    shard_size: Annotated[str, typer.Option("--shard-size", help="What no MindRecord file may pass.")] = "2GB",
    bad_records: Annotated[str, typer.Option("--bad-records", help="fail or skip.")] = "fail",
) -> None:
    """Convert text to MindRecord, which scenarios read by data='mindrecord:FOLDER'."""
    from harness import conversion
    from harness.launch.code import Code
    from harness.scenario import Scenario

    scenario = Scenario(data=data, sequence=sequence, bad_records=bad_records)
    done = conversion.convert(scenario, Code(Path.cwd()), folder, conversion.parse_size(shard_size))
    console = Console(highlight=False)
    for warning in done.warnings:
        console.print(warning, style="yellow", markup=False, soft_wrap=True)
    console.print(
        f"{done.rows} rows, {done.text / 1e6:.2f} MB of text, in {done.seconds:.2f} s "
        f"({done.text / 1e6 / done.seconds:.2f} MB/s); the largest of {done.shards} shards has "
        f"{done.largest / 1e6:.2f} MB",
        markup=False,
        soft_wrap=True,
    )
