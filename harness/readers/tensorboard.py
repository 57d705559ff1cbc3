"""Scalars of TensorBoard's event files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.errors import ResultsError
from harness.readers.log import Gatherer, Reading, canonical

TAGS = {"lm loss": "loss", "iteration-time": "step_time", "model-flops-throughput-per-npu": "achieved_flops"}
"""What Megatron's and MindFormers' kinds call it → what it is called here."""

SCALES = {"iteration-time": 1e-3, "model-flops-throughput-per-npu": 1e12}
"""Factor to seconds, FLOP/s."""


def read(place: Path) -> Reading:
    """The curves of an event file, or of all those of a folder, in the order of their names, which begin with a time.

    A tag's ``train/`` is left out of its name.

    Raises:
        ResultsError: the package is not installed, nothing can be read, or there is no scalar.
    """
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    except ImportError:
        raise ResultsError(
            f"{place.name} holds TensorBoard's event files, whose reader is not installed; "
            "pip install 'mindspore-harness[tensorboard]'"
        ) from None
    files = sorted(place.glob("*tfevents*")) if place.is_dir() else [place]
    gatherer = Gatherer()
    try:
        for file in files:
            for event in EventFileLoader(str(file)).Load():
                gatherer.reading.lines += 1
                values = dict(_scalars(event))
                if values:
                    gatherer.add(event.step, values)
    except Exception as error:
        raise ResultsError(f"{place.name} can't be read: {type(error).__name__}: {error}") from None
    found = gatherer.finished()
    if not found.curves:
        raise ResultsError(f"{place.name}: none of {found.lines} events is a scalar")
    return found


def _scalars(event: Any) -> Iterator[tuple[str, float]]:
    from tensorboard.util import tensor_util

    for value in event.summary.value:
        numbers = tensor_util.make_ndarray(value.tensor) if value.HasField("tensor") else None
        if numbers is not None and numbers.size == 1 and numbers.dtype.kind in "fiu":
            tag = value.tag.removeprefix("train/")
            yield canonical(TAGS.get(tag, tag)), SCALES.get(tag, 1.0) * float(numbers.reshape(()))
