"""``harness report``: a session for a pull request, and JUnit files merged."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.cli.baseline import Baselines
from harness.cli.places import BASELINES, LATEST

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show a session's results elsewhere.")


@app.command()
def html(
    results: Annotated[Path, typer.Argument(help="Folder of a session's results.")] = LATEST,
    output: Annotated[Path | None, typer.Option("--output", help="File (default: report.html among them).")] = None,
    url: Annotated[str | None, typer.Option("--history", help="Database (default: that of the session).")] = None,
    baselines: Baselines = BASELINES,
) -> None:
    """Write the session as one page that needs nothing else, with the trends of its values."""
    from harness.history import address
    from harness.report.html import FILE
    from harness.report.html.session import write_page
    from harness.results import read

    found = read(results)
    target = output or results / FILE
    place = address(url, results.resolve().parent.parent)
    problem = write_page(target, found, results, place, baselines, Path.cwd())
    console = Console(highlight=False)
    console.print(str(target), markup=False, soft_wrap=True)
    if problem:
        console.print(problem, markup=False, soft_wrap=True)


@app.command()
def markdown(
    results: Annotated[Path, typer.Argument(help="Folder of a session's results.")] = LATEST,
    output: Annotated[Path | None, typer.Option("--output", help="File to write; else it is printed.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1_000, help="Characters (default: of a comment).")] = None,
) -> None:
    """Print the session for a comment on a pull request: worst first, details folded."""
    from harness.files import write_atomically
    from harness.report.markdown import LIMIT
    from harness.report.markdown import markdown as render
    from harness.results import read

    text = render(read(results), limit or LIMIT)
    if output:
        write_atomically(output, text)
    else:
        typer.echo(text, nl=False)


@app.command()
def junit(
    files: Annotated[list[Path], typer.Argument(help="JUnit files of shards or hardware.")],
    output: Annotated[Path, typer.Option("--merge", help="File to merge them into.")],
) -> None:
    """Merge JUnit files; what can't be read is told, and the others are merged all the same."""
    from harness.report.junit import merge

    found = merge(files, output)
    said = f"{found.tests} tests, {found.failures} failures, {found.errors} errors, {found.skipped} skipped"
    Console(highlight=False).print(f"{output}: {said}, {found.time:.3f} s", markup=False, soft_wrap=True)
