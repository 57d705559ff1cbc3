"""Reads rows as training would and says how long it took: ``python -m harness.trainer.reading FD``.

A request a line comes from the standard input, an answer a line goes to the descriptor.
"""

import os
import sys
import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import mindspore.dataset as ds
import numpy as np
import numpy.typing as npt

from harness import corpus
from harness.corpus import IGNORED, Tokens
from harness.errors import DataError
from harness.reading import Reading, Request
from harness.scenario import Scenario
from harness.trainer.data import COLUMN, passes
from harness.trainer.loop import reason


def lines(scenario: Scenario, root: Path) -> ds.Dataset:
    """A text's lines, in their order, by MindSpore's reader of them; each becomes a row in Python."""
    length = scenario.sequence + 1

    def row(line: npt.NDArray[np.str_]) -> Tokens:
        found = np.full(length, IGNORED, np.int32)
        tokens = np.frombuffer(str(line).encode()[:length], np.uint8)
        found[: len(tokens)] = tokens
        return found

    ds.config.set_prefetch_size(scenario.data_prefetch)
    path = root / scenario.data.partition(":")[2]
    dataset = ds.TextFileDataset(str(path), shuffle=False, num_parallel_workers=scenario.data_workers)
    dataset = dataset.map(
        row,
        ["text"],
        [COLUMN],
        num_parallel_workers=scenario.data_workers,
        python_multiprocessing=scenario.data_processes,
    )
    return dataset.repeat().batch(scenario.batch, drop_remainder=True)


def read(request: Request) -> Reading:
    """Reads what a request asks for."""
    scenario, root = Scenario.from_dict(request.scenario), Path(request.root)
    datasets: Iterable[ds.Dataset]
    if request.dataset == "TextFileDataset":
        datasets = [lines(scenario, root)]
    else:
        windows = corpus.load(scenario, root).train
        order = corpus.sample_order(len(windows), scenario.batch, request.batches, scenario.seed)
        datasets = passes(scenario, windows, order)
    # As training gets them: tensors, not arrays.
    batches = chain.from_iterable(dataset.create_tuple_iterator(num_epochs=1) for dataset in datasets)
    next(batches)
    start = time.perf_counter()
    for _ in range(request.batches - 1):
        next(batches)
    seconds = time.perf_counter() - start
    return Reading(rows=(request.batches - 1) * scenario.batch, seconds=seconds)


def main(descriptor: int) -> None:
    """Answers every request until there are no more."""
    with os.fdopen(descriptor, "w") as answers:
        for line in sys.stdin:
            try:
                answer = read(Request.model_validate_json(line))
            except (DataError, RuntimeError, ValueError) as error:
                answer = Reading(error=str(error) if isinstance(error, DataError) else reason(error))
            answers.write(answer.model_dump_json() + "\n")
            answers.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
