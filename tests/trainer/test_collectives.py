"""The collectives that Cells declare are those that MindSpore executes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.scenarios import SHORT
from harness import Layout
from harness.launch import rank_environment
from harness.launch.code import Code
from harness.launch.ports import reserved_port

ROOT = Path(__file__).parents[2]
PIPELINE = SHORT.replace(layout=Layout(tp=2, pp=2), micro_batches=2)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "scenario",
    [
        SHORT.replace(layout=Layout(tp=2)),
        SHORT.replace(layout=Layout(tp=2), recompute="full"),
        SHORT.replace(layout=Layout(dp=2, tp=2, optimizer_sharding=True)),
        PIPELINE,
        PIPELINE.replace(pipeline_schedule="zero_bubble"),
        PIPELINE.replace(recompute="full"),
    ],
    ids=["tp2", "tp2-recompute", "dp2-tp2-sharded", "tp2-pp2", "tp2-pp2-zero-bubble", "tp2-pp2-recompute"],
)
def test_what_cells_declare_is_what_the_profiler_counts(scenario, tmp_path):
    ranks = scenario.layout.world_size
    with reserved_port() as port:
        command = [str(Path(sys.executable).parent / "msrun"), f"--worker_num={ranks}", f"--local_worker_num={ranks}"]
        command += [f"--master_port={port}", f"--log_dir={tmp_path / 'msrun'}", "--join=True"]
        command += ["tests/trainer/inside/counted_step.py", json.dumps(scenario.to_dict()), str(tmp_path)]
        environment = {**rank_environment(ranks, Code(ROOT)), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
    for rank in range(ranks):
        counts = tmp_path / f"counts-{rank}.json"
        assert counts.exists(), done.stdout[-2000:]
        profiled, declared = json.loads(counts.read_text())
        assert declared == profiled
