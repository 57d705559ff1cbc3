"""Batches through mindspore.dataset, in the order that the corpus planned."""

from collections.abc import Iterator

import mindspore.dataset as ds
import numpy as np
import numpy.typing as npt

from harness import stored
from harness.corpus import IGNORED, StoredRows, Tokens
from harness.errors import DataError
from harness.scenario import Scenario

COLUMN = stored.COLUMN


class _Rows:
    """Random access to windows; index −1 is a row that weighs nothing."""

    def __init__(self, windows: Tokens, order: npt.NDArray[np.int64]) -> None:
        self.windows = windows
        self.order = order
        self.empty = np.full(windows.shape[1], IGNORED, np.int32)

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, position: int) -> tuple[npt.NDArray[np.int32]]:
        index = self.order[position]
        return (self.empty if index < 0 else self.windows[index],)


def passes(scenario: Scenario, windows: Tokens | StoredRows, order: npt.NDArray[np.int64]) -> Iterator[ds.Dataset]:
    """This rank's batches, one an update: the batches of one dataset, then of the next.

    Args:
        scenario: gives the workers.
        windows: the training split.
        order: (steps, rows of this rank) indices.

    Raises:
        DataError: fewer rows are stored than a batch takes.
    """
    ds.config.set_prefetch_size(scenario.data_prefetch)
    batch = order.shape[1]
    if not isinstance(windows, StoredRows):
        dataset = ds.GeneratorDataset(
            _Rows(windows, order.reshape(-1)),
            [COLUMN],
            sampler=ds.SequentialSampler(),
            num_parallel_workers=scenario.data_workers,
            python_multiprocessing=scenario.data_processes,
        )
        yield dataset.batch(batch, drop_remainder=True)
        return
    # MindSpore takes no more indices than there are rows.
    updates = (windows.rows + 1) // batch
    if not updates:
        raise DataError(f"data={scenario.data!r} holds {windows.rows} rows; a rank's batch takes {batch}")
    for first in range(0, len(order), updates):
        own = order[first : first + updates].reshape(-1)
        dataset = ds.MindDataset(
            list(windows.files),
            [COLUMN],
            num_parallel_workers=scenario.data_workers,
            sampler=ds.SubsetSampler(np.where(own < 0, windows.rows, own).tolist()),
        )
        yield dataset.batch(batch, drop_remainder=True)
