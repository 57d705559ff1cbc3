"""Trains a scenario once, alone on its device, for those who compare many runs of it."""

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

from harness.errors import CheckpointError
from harness.external import External
from harness.faults import Fault
from harness.launch import train
from harness.launch.code import Code
from harness.launch.command import run_command
from harness.launch.placement import HERE, Placement
from harness.launch.supervise import Progress
from harness.locks import device_lock
from harness.metrics.registry import METRICS
from harness.run import SHARED, Run
from harness.scenario import Scenario

ShowProgress = Callable[[Scenario], AbstractContextManager[Progress | None]]

DEADLINE = 600.0
"""Seconds that a run may take where nobody says otherwise."""


def measure(
    scenario: Scenario | External,
    hardware: str,
    code: Code,
    folder: Path,
    deadline: float = DEADLINE,
    fault: Fault | None = None,
    show_progress: ShowProgress = lambda scenario: nullcontext(),
    placement: Placement = HERE,
    *,
    until: int | None = None,
    resume: Path | None = None,
    shared: bool = False,
    graphs: Path | None = None,
) -> Run:
    """Trains, after other sessions of the same user are done with the device.

    Args:
        scenario: what to train; of a training of others, nothing but its deadline can be chosen.
        hardware: ``cpu``, ``gpu`` or ``ascend``.
        code: whose code.
        folder: of the run; what it held before is removed.
        deadline: seconds the ranks may take.
        fault: planted into the run.
        show_progress: shows steps while they come.
        placement: where they run; a cluster's devices are given out by the cluster.
        until: as in ``harness.launch.train``.
        resume: likewise.
        shared: whether other trainings that share the device may run meanwhile; the run then has no times.
        graphs: as in ``harness.launch.train``.

    Raises:
        ScenarioError, DataError, CheckpointError: it can't be trained.
        LaunchError: a rank failed or did not finish in time.
    """
    here = placement.launcher == "local" or isinstance(scenario, External)
    asked = time.monotonic()
    with ExitStack() as stack:
        if here:
            stack.enter_context(device_lock(hardware, shared))
        waited = time.monotonic() - asked
        if isinstance(scenario, External):
            shutil.rmtree(folder, ignore_errors=True)
            return run_command(scenario, hardware, code, folder, deadline)
        progress = stack.enter_context(show_progress(scenario))
        if resume is not None and folder.resolve() in resume.resolve().parents:
            raise CheckpointError(f"{resume.name} lies in the folder of the run that would go on from it; move it")
        shutil.rmtree(folder, ignore_errors=True)
        run = train(
            scenario,
            hardware,
            code,
            folder,
            deadline,
            fault,
            progress,
            placement,
            until=until,
            resume=resume,
            graphs=graphs,
        )
    run.phases["wait"] = waited
    return untimed(run) if shared else run


def untimed(run: Run) -> Run:
    """A run without what only a training that is alone on its device can say."""
    names = {name for name in run.metrics if name in METRICS and METRICS[name].scope == "machine"}
    return run.model_copy(
        update={
            "metrics": {name: value for name, value in run.metrics.items() if name not in names},
            "undefined": {**run.undefined, **dict.fromkeys(names, SHARED)},
            "straggler": "",
            "shared": True,
        }
    )
