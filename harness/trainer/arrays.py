"""Arrays of a checkpoint: written by one rank, and read by one that may hold other parts of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Parameter, Tensor, nn
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from harness.checkpoints.manifest import Manifest, RankPart
from harness.checkpoints.policy import Format
from harness.errors import CheckpointError
from harness.trainer.optimizer import subject

Arrays = Mapping[str, npt.NDArray[np.generic]]


def save(arrays: Arrays, path: Path, kind: Format) -> bool:
    """Writes arrays by their names, and says whether all are finite.

    Raises:
        OSError: they can't be written.
    """
    try:
        if kind == "ckpt":
            ms.save_checkpoint([{"name": name, "data": Tensor(array)} for name, array in arrays.items()], str(path))
        else:
            save_file(dict(arrays), path)
    except (SafetensorError, RuntimeError, ValueError) as error:
        raise OSError(None, str(error).strip().splitlines()[0]) from None
    return all(bool(np.isfinite(array).all()) for array in arrays.values())


def load(path: Path) -> Arrays:
    """All arrays of a file.

    Raises:
        CheckpointError: it holds none.
    """
    try:
        if path.suffix == ".ckpt":
            return {name: found.asnumpy() for name, found in ms.load_checkpoint(str(path)).items()}
        found: Arrays = load_file(path)
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path.parent.name}: {path.name} can't be read: {error}") from None
    return found


def gathered(folder: Path, manifest: Manifest) -> "Whole":
    """The whole arrays of a checkpoint, whatever layout saved it."""
    return Whole([(part, load(folder / part.arrays.name)) for part in manifest.ranks])


class Whole:
    """Arrays put together from the parts of all ranks; of copies, the first."""

    def __init__(self, parts: Sequence[tuple[RankPart, Arrays]]) -> None:
        self._parts: dict[str, dict[int, tuple[RankPart, npt.NDArray[np.generic]]]] = {}
        for part, arrays in parts:
            for name, array in arrays.items():
                shard = part.shard if name in part.cut else 0
                self._parts.setdefault(name, {}).setdefault(shard, (part, array))

    def names(self) -> set[str]:
        """Of all arrays."""
        return set(self._parts)

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        """A whole array.

        Raises:
            CheckpointError: a part of it is missing.
        """
        parts = self._parts[name]
        first, array = next(iter(parts.values()))
        if name not in first.cut:
            return array
        if sorted(parts) != list(range(first.shards)):
            raise CheckpointError(f"the checkpoint holds {len(parts)} of {first.shards} parts of {name!r}")
        return np.concatenate([parts[shard][1] for shard in range(first.shards)], first.cut[name])


def give_all(model: nn.Cell, arrays: "Whole") -> None:
    """Gives a whole model what a checkpoint holds of one.

    Raises:
        CheckpointError: it is of another model.
    """
    parameters = list(model.get_parameters())
    strange = {subject(name) for name in arrays.names()} - {parameter.name for parameter in parameters}
    if strange:
        raise CheckpointError(f"the checkpoint is of another model: this one has no {min(strange)!r}")
    give(parameters, arrays, {})


def give(parameters: Sequence[Parameter], arrays: "Arrays | Whole", cut: Mapping[str, tuple[int, int, int]]) -> None:
    """Sets parameters to arrays of the same names.

    Args:
        parameters: to set.
        arrays: whole ones, or those of this very rank.
        cut: parameters that are cut from whole ones → axis, shard, shards.

    Raises:
        CheckpointError: an array is missing, or of another shape.
    """
    known = arrays.names() if isinstance(arrays, Whole) else set(arrays)
    for parameter in parameters:
        if parameter.name not in known:
            raise CheckpointError(f"the checkpoint is of another model: it has no {parameter.name!r}")
        array = arrays[parameter.name]
        if parameter.name in cut:
            axis, shard, shards = cut[parameter.name]
            array = np.split(array, shards, axis)[shard]
        if array.shape != tuple(parameter.shape):
            raise CheckpointError(
                f"the checkpoint is of another model: its {parameter.name!r} has shape {array.shape}, not "
                f"{tuple(parameter.shape)}"
            )
        parameter.set_data(Tensor(np.asarray(array, order="C")))
