"""A rank process: reads the request, trains, and leaves its report."""

import faulthandler
import os
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import mindspore as ms
from mindspore import communication

from harness.environment import processor
from harness.errors import HarnessError
from harness.faults import Fault
from harness.files import write_atomically
from harness.launch.request import GRAPHS, OWN_GRAPHS, REQUESTED, Request, report_file
from harness.scenario import Scenario
from harness.trainer.faults import plant
from harness.trainer.graph_cache import reuse_graphs
from harness.trainer.loop import Training
from harness.trainer.parallel.groups import Groups, impatient, prime_messages
from harness.trainer.phases import Phases

DEVICE_TARGETS = {"cpu": "CPU", "gpu": "GPU", "ascend": "Ascend"}


def main(folder: Path) -> None:
    """Runs this process's share of the request in ``folder``."""
    phases = Phases()
    if REQUESTED in os.environ:
        phases.add("start", time.time() - float(os.environ[REQUESTED]))
    request = Request.read(folder)
    sys.path.insert(0, request.root)
    scenario = Scenario.from_dict(request.scenario)
    ms.set_context(mode=ms.GRAPH_MODE if scenario.mode == "graph" else ms.PYNATIVE_MODE)
    if scenario.graph_kernel:
        ms.set_context(enable_graph_kernel=True)
    if scenario.compile_cache:
        # Beside the runs of the session, so that a later one finds it and none of another session does.
        ms.set_context(enable_compile_cache=True, compile_cache_path=str(folder.parent / "compile-cache"))
    ms.set_device(DEVICE_TARGETS[request.hardware])
    if request.hardware == "cpu" and scenario.mode == "graph":
        # With two threads to dispatch operators MindSpore keeps their order; with one, each starts the first that
        # waits for it, and a weight's gradient may come last of all. Left alone, it depends on the number of cores.
        ms.runtime.dispatch_threads_num(2 if scenario.execution_order == "graph" else 1)
    ms.set_seed(scenario.seed)
    rank, groups = 0, Groups()
    if scenario.layout.world_size > 1:
        with phases("join"):
            # Only CPU's ranks sleep there, and a process that holds a device must not be forked.
            with impatient() if request.hardware == "cpu" else nullcontext():
                communication.init()
            rank = communication.get_rank()
            prime_messages(rank)
            if scenario.engine == "explicit":
                groups = Groups.create(scenario.layout, rank)
    # A rank that hangs is ended by SIGTERM and then shows where it stood.
    faulthandler.register(signal.SIGTERM, all_threads=True, chain=True)
    shared = os.environ.get(GRAPHS)
    cache = reuse_graphs(Path(shared), folder / OWN_GRAPHS, rank, scenario) if shared else None
    with phases("build"):
        training = Training(scenario, rank, groups, request, folder, phases)
    if request.fault:
        plant(Fault.parse(request.fault), training)
    report = training.run()
    reused = {"reused_graphs": cache.reused if cache else 0}
    measured = report.model_copy(update=device_figures(request.hardware) | reused)
    write_atomically(report_file(folder, rank), measured.model_dump_json(indent=1))
    if cache:
        cache.publish()


def device_figures(hardware: str) -> dict[str, object]:
    """Device model, threads, and the pool's peak where MindSpore tells it to the process (not on CPU)."""
    figures: dict[str, object] = {"threads": int(os.environ.get("OMP_NUM_THREADS", "0"))}
    if hardware == "cpu":
        return {**figures, "device": processor()}
    peak = ms.runtime.max_memory_allocated() / 2**20
    return {**figures, "device": ms.hal.get_device_name(0), "peak_memory": peak}


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except HarnessError as error:
        sys.exit(f"error: {error}")
