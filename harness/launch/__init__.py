"""Starts the ranks of a scenario, watches them, and brings every report home."""

import os
import re
import shutil
import time
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

from pydantic import ValidationError

from harness import corpus
from harness.assemble import assemble
from harness.checkpoints.resume import check_data, check_resume
from harness.checkpoints.store import FOLDER, Store, copy
from harness.corpus import Corpus
from harness.errors import CheckpointError, LaunchError, ResultsError, ScenarioError
from harness.faults import Fault
from harness.files import tail
from harness.launch import fork, local, msrun, slurm, spikes
from harness.launch.code import Code
from harness.launch.fork import Forking
from harness.launch.machine import Machine
from harness.launch.placement import HERE, Placement
from harness.launch.rank import CORES
from harness.launch.request import GRAPHS, OF_A_RUN, OWN_GRAPHS, REQUESTED, STARTED, Request, clear, report_file
from harness.launch.supervise import Job, Progress, RankFailure, supervise
from harness.models import sizes_of
from harness.run import RankReport, Run
from harness.scenario import Scenario
from harness.topology import numa_nodes, plan

TRAINER = "harness.trainer"
"""Module that a rank runs."""

_PEAK = re.compile(r"actual peak used mem:(\d+)M")


def train(
    scenario: Scenario,
    hardware: str,
    code: Code,
    folder: Path,
    deadline: float,
    fault: Fault | None = None,
    progress: Progress | None = None,
    placement: Placement = HERE,
    *,
    until: int | None = None,
    resume: Path | None = None,
    graphs: Path | None = None,
) -> Run:
    """Runs a scenario as real processes.

    Args:
        scenario: what to train.
        hardware: ``cpu``, ``gpu`` or ``ascend``.
        code: whose code the ranks run.
        folder: a folder of this run's own; logs and reports stay in it.
        deadline: seconds that the ranks may take.
        fault: planted into the training, to see it caught.
        progress: told of the last step now and then.
        placement: where the ranks run.
        until: update after which it is stopped on purpose, as a job's end would.
        resume: folder of checkpoints whose newest whole one is gone on from; copied, unless it is this run's own.
        graphs: folder of compiled graphs to load and to add to, where ``may_reuse_graphs`` allows it; None compiles
            every graph.

    Raises:
        ScenarioError: the trainer can't run this layout or precision on this hardware.
        DataError: the data is missing, unreadable or too short; found before any process is started.
        CheckpointError: there is no whole checkpoint, or it is another training's; found before any process, too.
        LaunchError: a rank failed, or did not finish in time.
    """
    check_supported(scenario, hardware)
    if until is not None and not 0 < until <= scenario.steps:
        raise ScenarioError(f"until={until} and steps={scenario.steps} disagree: it must lie among them")
    found = corpus.check(scenario, code.root)
    ranks = scenario.layout.world_size
    folder = folder.resolve()
    step: int | None = None
    problems: list[str] = []
    if resume is not None:
        step, problems = _resumable(scenario, resume, found)
        if until is not None and until <= step:
            raise ScenarioError(f"until={until} and the checkpoint of step {step} disagree: it is past that")
        if resume.resolve() != folder / FOLDER:
            copy(resume, folder / FOLDER, step)
    clear(folder)
    Request(
        scenario=scenario.to_dict(),
        hardware=hardware,
        root=str(code.root.resolve()),
        fault=str(fault) if fault else None,
        until=until,
        resume=step,
    ).write(folder)
    environment = rank_environment(ranks, code) | {REQUESTED: f"{time.time():.3f}"}
    if graphs and may_reuse_graphs(scenario, hardware):
        environment[GRAPHS] = str(graphs.resolve())
    if placement.binding == "core":
        environment[CORES] = ";".join(",".join(map(str, own)) for own in plan(scenario.layout, numa_nodes()))
    is_queued = placement.launcher == "slurm"
    if is_queued:
        # Inside an allocation srun would make a step of that, not a job with a name of its own.
        for name in ("SLURM_JOB_ID", "SLURM_JOBID"):
            environment.pop(name, None)
    else:
        Machine.here(hardware).write(folder)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder / OWN_GRAPHS, ignore_errors=True)
        command: list[str] | Forking | None = None
        if placement.forks(hardware, code.python):
            try:
                command = stack.enter_context(fork.command(ranks, folder, TRAINER, [str(folder)], code, environment))
            except LaunchError as error:
                problems.append(f"ranks were started as fresh processes: {error}")
        if command is None:
            command = stack.enter_context(_fresh(placement, ranks, hardware, folder, code))
        queued = folder / STARTED if is_queued else None
        try:
            supervise(Job(command, ranks, folder, environment, deadline, queued=queued), progress)
        except RankFailure as error:
            explained = ""
            with suppress(ResultsError):
                explained = "\n".join(spikes.explain(folder))
            if explained:
                raise RankFailure(f"{error}\n{explained}", error.timed_out) from None
            raise
    reports = [_report(folder, rank, scenario, hardware) for rank in range(ranks)]
    for report in reports:
        if report.source and not code.may_run(Path(report.source)):
            name = Path(report.source).name
            raise LaunchError(f"{name} was run from the working tree, not from the checkout; install nothing over it")
    reporting = scenario.reporting_rank
    end = max(0.0, time.time() - report_file(folder, reporting).stat().st_mtime)
    host = Machine.read(folder).host(hardware, reports[0].device, placement.binding)
    run = assemble(scenario, host, reports, str(fault) if fault else None)
    return run.model_copy(
        update={
            "resumed_from": step,
            "warnings": [*problems, *run.warnings, *spikes.explain(folder)],
            "phases": {**reports[reporting].phases, "end": end},
        }
    )


def _fresh(
    placement: Placement, ranks: int, hardware: str, folder: Path, code: Code
) -> AbstractContextManager[list[str]]:
    program = [str(code.python), "-m", TRAINER, str(folder)]
    if placement.launcher == "slurm":
        return slurm.command(ranks, placement.nodes(ranks), hardware, folder, program)
    if ranks == 1:
        return local.command(ranks, folder, program)
    return msrun.command(ranks, folder, program, by_node=placement.binding == "numa")


def _resumable(scenario: Scenario, source: Path, data: Corpus | None) -> tuple[int, list[str]]:
    """The step to go on from, and what is wrong with newer checkpoints."""
    manifest, problems = Store(source).newest()
    if manifest is None:
        told = "; ".join(problems) or "it holds none"
        raise CheckpointError(f"no whole checkpoint in {source.name!r}: {told}")
    check_resume(manifest, scenario)
    if data is not None:
        check_data(manifest, scenario, data.digest, len(data.train))
    return manifest.step, [f"{problem}; went on from step {manifest.step}" for problem in problems]


def check_supported(scenario: Scenario, hardware: str) -> None:
    """Refuses what the explicit engine does not do.

    Raises:
        ScenarioError: names the field.
    """
    layout = scenario.layout
    cores = os.cpu_count() or 1
    if scenario.data_workers > cores:
        raise ScenarioError(
            f"data_workers={scenario.data_workers} are more than the machine has cores, which MindSpore refuses; "
            f"use at most {cores}"
        )
    if hardware == "cpu" and scenario.engine != "explicit":
        raise ScenarioError(
            f"engine={scenario.engine!r}: MindSpore's graph parallelism runs on Ascend and GPU only; use "
            "engine='explicit', or compile it with `harness audit`"
        )
    if sizes_of(scenario.model) is None:
        for name in ("tp", "pp"):
            if getattr(layout, name) > 1:
                raise ScenarioError(
                    f"layout.{name}={getattr(layout, name)} and model={scenario.model!r} disagree: the trainer can't "
                    f"cut a model of yours; use layout.dp, a preset, or 'decoder:layers=…'"
                )
    if layout.optimizer_sharding and scenario.optimizer != "adamw":
        raise ScenarioError(
            f"layout.optimizer_sharding and optimizer={scenario.optimizer!r} disagree: it keeps no states to shard"
        )
    if hardware == "cpu" and scenario.precision == "bfloat16":
        raise ScenarioError(
            "precision='bfloat16': MindSpore 2.10 has no bfloat16 matmul on CPU; use float32 or float16"
        )


def may_reuse_graphs(scenario: Scenario, hardware: str) -> bool:
    """Return whether a run may load graphs that another run compiled.

    Only on CPU and for this trainer's own model and step, where equal bits were shown: a user's function may change
    what the key of a graph does not contain. A scenario about the compiler compiles.
    """
    ours = scenario.engine == "explicit" and not scenario.step and sizes_of(scenario.model) is not None
    plain = scenario.mode == "graph" and not scenario.graph_kernel and not scenario.compile_cache
    return hardware == "cpu" and ours and plain


def rank_environment(ranks: int, code: Code) -> dict[str, str]:
    """Environment of every rank: its code, its share of the cores, pool statistics at exit, unbuffered logs."""
    environment = dict(os.environ)
    cores = len(os.sched_getaffinity(0))
    environment |= {
        "OMP_NUM_THREADS": str(max(1, cores // ranks)),
        "MS_DEV_RUNTIME_CONF": "memory_statistics:True",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        # msrun starts «python», whichever comes first.
        "PATH": f"{code.python.parent}{os.pathsep}{environment.get('PATH', os.defpath)}",
    }
    environment.setdefault("GLOG_v", "3")
    # Ranks that come before the scheduler ask again after 3 to 5 s otherwise; below a second they ask without a pause.
    environment.setdefault("MS_RETRY_INTERVAL_LOWER", "1")
    environment.setdefault("MS_RETRY_INTERVAL_UPPER", "2")
    if code.import_paths:
        paths = [*code.import_paths, *filter(None, [environment.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    for name in ("MS_COMPILER_CACHE_ENABLE", *OF_A_RUN):
        environment.pop(name, None)
    return environment


def _report(folder: Path, rank: int, scenario: Scenario, hardware: str) -> RankReport:
    path = report_file(folder, rank)
    try:
        report = RankReport.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise LaunchError(f"rank {rank} left no readable report: {error}") from None
    if report.scenario_hash != scenario.hash or report.rank != rank:
        raise LaunchError(f"rank {rank} reported on scenario {report.scenario_hash}, not {scenario.hash}")
    if hardware == "cpu":
        # MindSpore's CPU pool tells its peak at exit only, in the log.
        peaks = _PEAK.findall("\n".join(tail(folder / f"rank-{rank}.log", 200)))
        report = report.model_copy(update={"peak_memory": float(peaks[-1]) if peaks else None})
    return report
