"""Writes a scenario's rows as MindRecord: ``python -m harness.trainer.convert FOLDER``, with a request in it."""

import sys
import time
from pathlib import Path

import numpy as np
from mindspore.mindrecord import FileWriter

from harness import corpus, stored
from harness.conversion import REPORT, ROWS, Report, Request
from harness.corpus import IGNORED, Tokens
from harness.errors import HarnessError
from harness.files import write_atomically
from harness.launch.child import REQUEST
from harness.scenario import Scenario

AT_ONCE = 1024
"""Rows that are handed over together."""


def convert(request: Request, folder: Path) -> Report:
    """Writes shards, the held-out rows, and last the manifest.

    Args:
        request: what to convert.
        folder: for the files.

    Raises:
        DataError: the data is no good, or the bound on shards too small.
    """
    scenario = Scenario.from_dict(request.scenario)
    loaded = corpus.load(scenario, Path(request.root))
    assert isinstance(loaded.train, np.ndarray)
    rows = np.vstack([loaded.train, np.full((1, scenario.sequence + 1), IGNORED, np.int32)])
    most = stored.rows_per_shard(request.shard_size, scenario.sequence + 1)
    start = time.perf_counter()
    shards: list[str] = []
    for first in range(0, len(rows), most):
        shards.append(f"train-{len(shards)}.mindrecord")
        _write(folder / shards[-1], rows[first : first + most])
    seconds = time.perf_counter() - start
    np.save(folder / stored.HELD_OUT, loaded.held_out, allow_pickle=False)
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    stored.Manifest(
        data=loaded.digest,
        sequence=scenario.sequence,
        rows=len(loaded.train),
        shards=shards,
        files=[stored.File(name=name, size=size) for name, size in sizes.items()],
    ).write(folder)
    return Report(
        rows=len(loaded.train),
        shards=len(shards),
        text=int((loaded.train[:, 1:] != IGNORED).sum()),
        seconds=seconds,
        largest=max(sizes[name] for name in shards),
        warnings=list(loaded.warnings),
    )


def _write(path: Path, rows: Tokens) -> None:
    writer = FileWriter(str(path), shard_num=1)
    writer.set_header_size(stored.HEADER)
    writer.set_page_size(stored.PAGE)
    writer.add_schema({stored.COLUMN: {"type": "int32", "shape": [rows.shape[1]]}}, "rows of tokens")
    for first in range(0, len(rows), AT_ONCE):
        writer.write_raw_data([{stored.COLUMN: row} for row in rows[first : first + AT_ONCE]])
    writer.commit()


if __name__ == "__main__":
    work = Path(sys.argv[1])
    try:
        asked = Request.model_validate_json((work / REQUEST).read_text(encoding="utf-8"))
        write_atomically(work / REPORT, convert(asked, work / ROWS).model_dump_json())
    except HarnessError as error:
        sys.exit(f"error: {error}")
