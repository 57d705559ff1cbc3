"""Batches through mindspore.dataset, in the order that the corpus planned."""

import mindspore.dataset as ds
import numpy as np
import numpy.typing as npt

from harness.corpus import IGNORED, Tokens
from harness.scenario import Scenario


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


def batches(scenario: Scenario, windows: Tokens, order: npt.NDArray[np.int64]) -> ds.Dataset:
    """This rank's batches, one an update.

    Args:
        scenario: gives the workers.
        windows: (windows, sequence + 1) of the training split.
        order: (steps, rows of this rank) indices.
    """
    rows = _Rows(windows, order.reshape(-1))
    dataset = ds.GeneratorDataset(
        rows,
        ["windows"],
        sampler=ds.SequentialSampler(),
        num_parallel_workers=scenario.data_workers,
        python_multiprocessing=scenario.data_processes,
    )
    return dataset.batch(order.shape[1], drop_remainder=True)
