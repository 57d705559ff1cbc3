"""Compiles a scenario's graph as one of its ranks, and leaves the graph in the run's folder."""

import os
import sys
from pathlib import Path

from harness.errors import HarnessError
from harness.launch.request import Request
from harness.scenario import Scenario
from harness.trainer.auto.pretend import pretend_rank


def main(folder: Path, rank: int) -> None:
    """Compiles for the target that the request names; no device is needed, only libraries that can be loaded."""
    request = Request.read(folder)
    scenario = Scenario.from_dict(request.scenario)
    # Of all the graphs that compiling goes through, the last one is kept.
    os.environ |= {
        "MS_DEV_SAVE_GRAPHS": "2",
        "MS_DEV_SAVE_GRAPHS_PATH": str(folder),
        "MS_DEV_DUMP_IR_PASSES": "backend_pass",
    }
    import mindspore as ms

    from harness.trainer.auto.engine import AutoEngine

    ms.set_context(mode=ms.GRAPH_MODE, device_target={"gpu": "GPU", "ascend": "Ascend"}[request.hardware])
    pretend_rank(rank, scenario.layout.world_size, request.hardware)
    AutoEngine(scenario, rank, Path(request.root), folder, with_values=False).compile()
    (folder / f"compiled-{rank}").write_text(ms.__version__)
    sys.stdout.flush()
    # MindSpore's exit waits for a device that is not there.
    os._exit(0)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).resolve(), int(sys.argv[2]))
    except HarnessError as error:
        sys.exit(f"error: {error}")
