"""Scalars of TensorBoard's event files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.errors import ResultsError
from harness.readers.log import Reading, add, canonical

TAGS = {"lm loss": "loss"}
"""What Megatron's kind calls it → what it is called here."""


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
    found = Reading()
    repeated: dict[int, None] = {}
    try:
        for file in files:
            for event in EventFileLoader(str(file)).Load():
                found.lines += 1
                for name, value in _scalars(event):
                    add(found, repeated, event.step, name, value)
    except Exception as error:
        raise ResultsError(f"{place.name} can't be read: {type(error).__name__}: {error}") from None
    if not found.curves:
        raise ResultsError(f"{place.name}: none of {found.lines} events is a scalar")
    found.repeated = list(repeated)
    return found


def _scalars(event: Any) -> Iterator[tuple[str, float]]:
    from tensorboard.util import tensor_util

    for value in event.summary.value:
        numbers = tensor_util.make_ndarray(value.tensor) if value.HasField("tensor") else None
        if numbers is not None and numbers.size == 1 and numbers.dtype.kind in "fiu":
            tag = value.tag.removeprefix("train/")
            yield canonical(TAGS.get(tag, tag)), float(numbers.reshape(()))
