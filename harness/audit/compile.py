"""Compiles a scenario's graph, rank by rank, each in a process of its own."""

import json
import os
import platform
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.audit import stand_in
from harness.audit.explain import metrics, rows
from harness.audit.graph import Graph, parse
from harness.audit.stand_in import SetupError
from harness.environment import Environment
from harness.errors import LaunchError, ScenarioError
from harness.files import tail, write_atomically
from harness.launch.code import Code
from harness.launch.request import Request
from harness.layout import Layout
from harness.run import Run
from harness.scenario import Scenario

TARGETS = ("gpu", "ascend")
CANN = Path("/usr/local/Ascend/ascend-toolkit")
REPORT = "audit.json"


def representatives(layout: Layout) -> list[int]:
    """One rank of each stage: the others of a stage differ from it in the names of their groups only."""
    return [layout.rank(stage, 0, 0) for stage in range(layout.pp)]


def missing(target: str) -> str:
    """Why nothing can be compiled for a target here; empty where it can."""
    if target == "gpu":
        return stand_in.missing()
    named = any(os.environ.get(name) for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"))
    return "" if named or CANN.exists() else "CANN is not installed here; install it and source its set_env.sh"


def audit(
    scenario: Scenario, target: str, code: Code, folder: Path, ranks: list[int] | None = None, deadline: float = 900.0
) -> tuple[Run, dict[int, Graph]]:
    """Compiles a scenario and reads what its step communicates.

    Args:
        scenario: its engine is one of MindSpore's.
        target: ``gpu`` or ``ascend``; no device is needed.
        code: whose code.
        folder: of the audit; what it held before is removed.
        ranks: to compile; one of each stage by default.
        deadline: seconds a rank may take.

    Returns:
        A run whose metrics are the counts, and each rank's graph.

    Raises:
        ScenarioError: the scenario has nothing to compile.
        SetupError: the front end is not set up.
        LaunchError: the compiler refuses the graph.
    """
    if scenario.engine == "explicit":
        raise ScenarioError("engine='explicit' has no graph to audit; use engine='semi_auto'")
    if target not in TARGETS:
        raise ScenarioError(f"target {target!r} is unknown; choose one of {', '.join(TARGETS)}")
    if reason := missing(target):
        raise SetupError(reason)
    chosen = representatives(scenario.layout) if ranks is None else sorted(set(ranks))
    for rank in chosen:
        scenario.layout.position(rank)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder = folder.resolve()
    Request(scenario=scenario.to_dict(), hardware=target, root=str(code.root.resolve())).write(folder)
    graphs = {rank: _compile(rank, target, code, folder, deadline) for rank in chosen}
    version = (folder / f"compiled-{chosen[0]}").read_text(encoding="utf-8")
    run = Run(
        scenario=scenario.to_dict(),
        hardware=target,
        environment=Environment(hardware=target, architecture=platform.machine(), mindspore=version, data=""),
        machine="front end",
        metrics=metrics(list(graphs.values()), scenario.layout, chosen),
        curves={},
        step_seconds=[],
    )
    write_atomically(folder / REPORT, json.dumps(report(scenario, graphs), indent=1))
    return run, graphs


def report(scenario: Scenario, graphs: dict[int, Graph]) -> dict[str, Any]:
    """Everything that was read, as plain values."""
    return {
        "scenario": scenario.to_dict(),
        "ranks": {
            str(rank): {
                "communication": [asdict(row) for row in rows(graph, scenario.layout, rank)],
                "parameters": {name: list(shape) for name, shape in graph.parameters.items()},
            }
            for rank, graph in graphs.items()
        },
    }


def _compile(rank: int, target: str, code: Code, folder: Path, deadline: float) -> Graph:
    environment = {**os.environ, "GLOG_v": "3", "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
    environment.pop("MS_COMPILER_CACHE_ENABLE", None)
    if target == "gpu":
        environment |= stand_in.environment()
    log = folder / f"rank-{rank}.log"
    command = [str(code.python), "-m", "harness.trainer.auto", str(folder), str(rank)]
    try:
        with log.open("wb") as output:
            # The compiler leaves what it could not analyse where it was started.
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=deadline,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise LaunchError(f"rank {rank} was not compiled within {deadline:g} s; allow more with --deadline") from None
    files = sorted((folder / f"rank_{rank}").glob("[0-9]*_backend_pass_*.ir"))
    if done.returncode or not files or not (folder / f"compiled-{rank}").exists():
        reasons = [line for line in tail(log, 200) if "Error" in line]
        reason = reasons[-1] if reasons else f"exit status {done.returncode}"
        raise LaunchError(f"rank {rank} can't be compiled: {reason}\nits log: {log.name} in the audit's folder")
    return parse(files[-1].read_text(encoding="utf-8"))
