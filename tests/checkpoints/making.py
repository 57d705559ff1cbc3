"""Small checkpoints, written as ranks write them."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save as serialize

from harness import Checkpoints, Scenario
from harness.checkpoints.manifest import Manifest
from harness.checkpoints.store import Store
from harness.evaluation import Evaluation

SCENARIO = Scenario(steps=100)
KEEP_ALL = Checkpoints(every=1, kept=1000)


def save(store: Store, step: int, ranks=1, policy=KEEP_ALL, reason="cadence", nll=None, finite=True):
    """What a training does after an update: every rank writes, then the first completes and prunes."""
    folder = store.begin(step)
    for rank in range(ranks):
        content = serialize({"w": np.full(4, 1000 * rank + step, np.float32)})

        def write(path, content=content):
            path.write_bytes(content)
            return finite

        store.announce(folder, store.add(folder, rank, write, "safetensors", f'{{"step": {step}}}'))
    manifest = Manifest(
        scenario=SCENARIO.to_dict(),
        mindspore="2.10.0",
        data="text-0",
        windows=50,
        step=step,
        samples=16 * step,
        learning_rate=1e-3,
        loss_scale=1.0,
        reason=reason,
        evaluation=None if nll is None else Evaluation(nll, 10, 5),
        ranks=store.announced(folder, ranks),
    )
    store.complete(folder, manifest)
    store.prune(policy, manifest)
    return manifest


@contextmanager
def file_system(folder: Path, options: str):
    """A file system in memory at a folder, where this user may mount one; else the test is skipped."""
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def files(folder: Path):
    """Of a checkpoint, in order."""
    return sorted(path for path in folder.iterdir() if path.is_file())
