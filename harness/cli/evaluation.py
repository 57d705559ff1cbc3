"""``harness eval``: checkpoints do tasks."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.errors import CheckpointError, HarnessError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Have checkpoints do tasks, and compare them.")

Tasks = Annotated[list[Path], typer.Argument(help="Task files (JSON Lines).")]
Shots = Annotated[int, typer.Option("--shots", min=0, help="Solved samples before each question.")]
Hardware = Annotated[str, typer.Option("--hardware", help="cpu, gpu or ascend.")]


@app.command()
def run(
    checkpoint: Annotated[Path, typer.Argument(help="Folder of a complete checkpoint.")],
    tasks: Tasks,
    shots: Shots = 0,
    temperature: Annotated[float, typer.Option("--temperature", help="0 takes the likeliest token always.")] = 0.0,
    top_k: Annotated[int, typer.Option("--top-k", help="Likeliest tokens that may be drawn; 0 for all.")] = 0,
    top_p: Annotated[float, typer.Option("--top-p", help="Share of the probability that may be drawn.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws.")] = 0,
    hardware: Hardware = "cpu",
    log: Annotated[Path | None, typer.Option("--log", help="Results (default: beside the run's checkpoints).")] = None,
) -> None:
    """Ask what has no result yet; each is written as it is done, so that a killed evaluation goes on."""
    from harness.decoding import Decoding
    from harness.devices import check_hardware
    from harness.examination import Examination, examine, log_beside
    from harness.launch.code import Code

    decoding = Decoding(temperature, top_k, top_p)
    asked = Examination(tuple(tasks), shots, decoding, seed, check_hardware(hardware))
    count, done = examine(checkpoint, asked, Code(Path.cwd()), log)
    Console(highlight=False).print(f"{count} samples asked, {done} had their results", markup=False)
    table([log or log_beside(checkpoint)])


@app.command()
def watch(
    folder: Annotated[Path, typer.Argument(help="Below which runs leave their checkpoints.")],
    tasks: Tasks,
    shots: Shots = 0,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between looks.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Ask what is there now, and end.")] = False,
    hardware: Hardware = "cpu",
) -> None:
    """Ask every checkpoint below a folder as soon as it is complete, beside the training; end it with Ctrl-C."""
    from harness.devices import check_hardware
    from harness.examination import Examination, complete, examine
    from harness.launch.code import Code

    console = Console(highlight=False)
    asked = Examination(tuple(tasks), shots, hardware=check_hardware(hardware), waits=False)
    seen: set[Path] = set()
    failed = False
    while True:
        for checkpoint in complete(folder, seen):
            try:
                count, done = examine(checkpoint, asked, Code(Path.cwd()))
                said = f"{count} samples asked, {done} had their results"
                seen.add(checkpoint)
            except HarnessError as error:
                if not checkpoint.exists():
                    said = "it was removed, as old ones are, before it could be asked"
                else:
                    said, failed = f"error: {error}", True
                    # Damaged it stays damaged; a log that another one writes is free again some time.
                    if isinstance(error, CheckpointError):
                        seen.add(checkpoint)
            console.print(f"{checkpoint}: {said}", markup=False, soft_wrap=True)
        if once:
            raise typer.Exit(2 if failed else 0)
        time.sleep(every)


@app.command("lm-eval")
def lm_eval(
    checkpoint: Annotated[Path, typer.Argument(help="Folder of a complete checkpoint.")],
    tasks: Annotated[list[str], typer.Argument(help="Task files of ours (….jsonl), or names of its tasks.")],
    shots: Shots = 0,
    include: Annotated[Path | None, typer.Option("--include", help="Folder of further tasks for it (YAML).")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Samples of each task.")] = None,
    hardware: Hardware = "cpu",
) -> None:
    """Have lm-evaluation-harness ask a checkpoint (needs the extra lm-eval)."""
    from harness.devices import check_hardware
    from harness.launch.code import Code
    from harness.lm_evaluation import Asked, evaluate
    from harness.report.evaluation import outside_table
    from harness.report.terminal import WIDE

    asked = Asked(tasks, shots, include, limit, check_hardware(hardware))
    Console(highlight=False, width=WIDE).print(outside_table(evaluate(checkpoint, asked, Code(Path.cwd()))))


@app.command()
def table(
    logs: Annotated[list[Path], typer.Argument(help="Logs, or folders of checkpoints; first the base.")],
) -> None:
    """Compare checkpoints: scores with standard errors, ↑ and ↓ where they differ by more than two."""
    from harness.checkpoints.manifest import MANIFEST
    from harness.errors import ResultsError
    from harness.examination import log_beside
    from harness.report.evaluation import score_table
    from harness.report.terminal import WIDE
    from harness.tasks.log import LOG, read
    from harness.tasks.summary import scores

    console = Console(highlight=False)
    results = []
    for place in logs:
        path = place
        if place.is_dir():
            path = log_beside(place) if (place / MANIFEST).exists() else place / LOG
        found = read(path)
        if not found.results:
            raise ResultsError(f"{path.parent.name}/{path.name} holds no results; ask with `harness eval run`")
        if found.damaged:
            console.print(f"{path.name}: {found.damaged} lines are no results and were left out", style="yellow")
        results += found.results
    Console(highlight=False, width=WIDE).print(score_table(scores(results)))
