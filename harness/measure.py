"""Trains a scenario once, alone on its device, for those who compare many runs of it."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from filelock import FileLock

from harness.errors import CheckpointError
from harness.external import External
from harness.faults import Fault
from harness.launch import train
from harness.launch.code import Code
from harness.launch.command import run_command
from harness.launch.placement import HERE, Placement
from harness.launch.supervise import Progress
from harness.locks import lock_folder
from harness.run import Run
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

    Raises:
        ScenarioError, DataError, CheckpointError: it can't be trained.
        LaunchError: a rank failed or did not finish in time.
    """
    here = placement.launcher == "local" or isinstance(scenario, External)
    device = FileLock(lock_folder() / f"device-{hardware}.lock") if here else nullcontext()
    if isinstance(scenario, External):
        with device:
            shutil.rmtree(folder, ignore_errors=True)
            return run_command(scenario, hardware, code, folder, deadline)
    with device, show_progress(scenario) as progress:
        if resume is not None and folder.resolve() in resume.resolve().parents:
            raise CheckpointError(f"{resume.name} lies in the folder of the run that would go on from it; move it")
        shutil.rmtree(folder, ignore_errors=True)
        return train(scenario, hardware, code, folder, deadline, fault, progress, placement, until=until, resume=resume)
