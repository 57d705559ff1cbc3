"""Trains three steps as one rank of several, the last under MindSpore's profiler; prints both counts of collectives.

Run by msrun: ``counted_step.py SCENARIO FOLDER``.
"""

import csv
import json
import sys
from collections import Counter
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import communication
from mindspore.profiler import ProfilerActivity, profile, tensorboard_trace_handler

from harness import Scenario
from harness.trainer.loop import build_model
from harness.trainer.parallel.explicit import Engine, Place
from harness.trainer.parallel.groups import Groups, prime_messages
from harness.trainer.step import as_tensor

scenario, folder = Scenario.from_dict(json.loads(sys.argv[1])), Path(sys.argv[2])
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
communication.init()
rank = communication.get_rank()
prime_messages(rank)
groups = Groups.create(scenario.layout, rank)
engine = Engine(build_model(scenario), scenario, Place.of(scenario, rank, groups))
windows = as_tensor(np.zeros((scenario.batch // scenario.layout.dp, scenario.sequence + 1), np.int32))
for step in (1, 2):
    engine.step(windows, 1e-3, step)
own = folder / f"profile-{rank}"
with profile(activities=[ProfilerActivity.CPU], on_trace_ready=tensorboard_trace_handler(str(own))):
    engine.step(windows, 1e-3, 3)
with next(own.rglob("cpu_op_type_info_*.csv")).open() as file:
    rows = [list(row.values()) for row in csv.DictReader(file)]
profiled = {kind: int(count) for kind, count, *_ in rows if kind in ("AllReduce", "AllGather")}
declared = Counter(found.kind for found in engine.traffic() if found.kind != "Send")
(folder / f"counts-{rank}.json").write_text(json.dumps([profiled, declared]))
