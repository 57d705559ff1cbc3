"""Saves and loads trained weights."""

import os
from collections.abc import Sequence
from pathlib import Path

import mindspore as ms
from mindspore import Parameter, nn

from harness import weights
from harness.errors import DataError
from harness.scenario import Scenario


def save(parameters: Sequence[Parameter], scenario: Scenario, step: int, folder: Path) -> None:
    """Writes weights to the side, and gives them their name when they are whole.

    Args:
        parameters: all of the model.
        scenario: that was trained.
        step: updates that were made.
        folder: to make; there must be none.
    """
    part = folder.with_name(f"{folder.name}.part")
    part.mkdir()
    path = part / weights.FILE
    named = [{"name": parameter.name, "data": parameter} for parameter in parameters]
    ms.save_checkpoint(named, str(path), format="safetensors")
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    size, digest = path.stat().st_size, weights.digest(path)
    weights.Manifest(scenario=scenario.to_dict(), step=step, size=size, digest=digest).write(part)
    part.rename(folder)


def load(model: nn.Cell, folder: Path) -> None:
    """Gives a model the weights of a folder that ``harness.weights.read`` found whole.

    Raises:
        DataError: they are of another model.
    """
    found = ms.load_checkpoint(str(folder / weights.FILE), format="safetensors")
    wanted = {parameter.name: parameter for parameter in model.get_parameters()}
    for name in sorted(wanted.keys() ^ found.keys()):
        whose = "the weights have none" if name in wanted else "the model has none"
        raise DataError(f"weights {folder.name!r} are of another model: parameter {name!r}, {whose}")
    for name, parameter in wanted.items():
        if parameter.shape != found[name].shape:
            raise DataError(
                f"weights {folder.name!r} are of another model: {name!r} has shape {tuple(found[name].shape)}, "
                f"not {tuple(parameter.shape)}"
            )
        parameter.set_data(found[name])
