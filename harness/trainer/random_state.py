"""The generators that a process draws from, taken down and set again."""

import random

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

from harness.checkpoints.state import RandomState


def capture() -> RandomState:
    """As they are now."""
    version, internal, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return RandomState(
        python=(version, list(internal), gauss),
        numpy=(str(kind), [int(key) for key in keys], int(position), int(has_gauss), float(cached)),
        mindspore=[int(value) for value in ms.get_rng_state().asnumpy()],
    )


def restore(state: RandomState) -> None:
    """Sets them as they were."""
    version, internal, gauss = state.python
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = state.numpy
    np.random.set_state((kind, np.array(keys, np.uint32), position, has_gauss, cached))
    ms.set_rng_state(Tensor(np.array(state.mindspore, np.uint8)))


def hidden(model: nn.Cell) -> list[str]:
    """Names of cells that draw from a state which MindSpore keeps inside its kernels, where nobody can save it."""
    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
    return [name for name, cell in model.cells_and_names() if isinstance(cell, kinds)]
