"""The key of a compiled graph: a digest of everything that it depends on.

A Cell is described by its class and by all its attributes: numbers, tensors with their values, parameters without
theirs (a graph receives them as inputs), operators, and other Cells in the same way. Two different graphs must never
have one key, so a value whose effect on a graph is unknown is an error.
"""

import dataclasses
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

PACKAGES = ("harness", "mindspore")
"""Packages whose classes are known: the sources of the first are part of the key, and the version of the second."""

RECOMPUTED = "recompute_"
"""Prefix of a recomputed Cell's scope; the rest is a name, set when the Cell is first parsed."""

_BOOKKEEPING = frozenset(
    {
        "__compile_cell_hook__",
        "__parse_method__",
        "_compile_cache",
        "_compile_phase",
        "_compiled",
        "_create_time",
        "_exist_names",
        "_exist_objs",
        "_has_mutable_args_list",
        "_id",
        "_init_flag",
        "_is_check_and_refresh",
        "_jit_graph_name",
        "_lazy_construct_sig",
        "_phase_cache",
        "_recompute_cell",
        "_scope",
        "arguments_key",
        "compile_phase",
        "current_phase",
        "sequence_modified",
    }
)
"""Attributes without effect on a Cell's graph: how it was made and compiled, and what it calls in PyNative mode."""

_CREATED_ON_USE = ("_hook", "_func_graph_flags")
"""Endings of the names of attributes that are missing or None until they are first used; empty means the same."""

_PARAMETER_FLAGS = ("layerwise_parallel", "parallel_optimizer", "requires_aggr", "requires_grad", "sliced")


class UnknownValueError(Exception):
    """A value whose effect on a graph is unknown; the message is its type."""


def graph_key(*parts: object) -> str:
    """Return the digest of some values in hexadecimal, equal only for values that compile to the same graph.

    Raises:
        UnknownValueError: a part contains a value that can't be described completely.
    """
    digest = hashlib.sha256()
    description = _Description(lambda text: digest.update(f"{len(text)}:{text}".encode()))
    for part in parts:
        description.add(part)
    return digest.hexdigest()


def source_digest() -> str:
    """Return the digest of this package's imported source files."""
    digest = hashlib.sha256()
    for name, module in sorted(sys.modules.items()):
        source = getattr(module, "__file__", None)
        if name.partition(".")[0] == PACKAGES[0] and source:
            digest.update(f"{name}\n".encode() + hashlib.sha256(Path(source).read_bytes()).digest())
    return digest.hexdigest()


class _Description:
    """Describes values piece by piece; an object that occurs again is described by its number."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write
        self.numbers: dict[int, int] = {}

    def add(self, value: Any) -> None:
        if value is None or isinstance(value, bool | int | float | str | bytes | ms.Type):
            self.write(f"{type(value).__name__} {value!r}")
        elif hasattr(type(value), "__members__"):
            self._class(type(value))
            self.write(value.name)
        elif isinstance(value, np.ndarray | np.generic):
            self._array(np.asarray(value))
        elif isinstance(value, tuple | list):
            self._items(value, list(value))
        elif isinstance(value, dict):
            self._items(value, [item for pair in value.items() for item in pair])
        elif id(value) in self.numbers:
            self.write(f"again {self.numbers[id(value)]}")
        else:
            self.numbers[id(value)] = len(self.numbers)
            self._object(value)

    def _object(self, value: Any) -> None:
        if isinstance(value, Parameter):
            self.add(["parameter", value.name, value.shape, value.dtype])
            self.add([getattr(value, name, None) for name in _PARAMETER_FLAGS])
            return
        if isinstance(value, Tensor):
            self.add(["tensor", value.dtype, value.asnumpy()])
            return
        self._class(type(value))
        if isinstance(value, nn.Cell):
            self.add(_attributes(value))
        elif isinstance(value, ops.Primitive):
            self.add(vars(value))
        elif dataclasses.is_dataclass(value):
            self.add([getattr(value, each.name) for each in dataclasses.fields(value)])
        else:
            raise UnknownValueError(f"{type(value).__module__}.{type(value).__qualname__}")

    def _class(self, kind: type) -> None:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind.__module__.partition(".")[0] not in PACKAGES or "<locals>" in kind.__qualname__:
            raise UnknownValueError(name)
        self.write(name)

    def _array(self, values: np.ndarray[Any, Any]) -> None:
        if values.dtype.hasobject:
            raise UnknownValueError("array of objects")
        digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
        self.write(f"{values.dtype.str} {values.shape} {digest}")

    def _items(self, value: Any, items: list[Any]) -> None:
        self.write(f"{type(value).__name__} of {len(items)}")
        for each in items:
            self.add(each)


def _attributes(cell: nn.Cell) -> dict[str, Any]:
    """Attributes of a Cell that may affect its graph."""
    found = {
        name: value
        for name, value in vars(cell).items()
        if name not in _BOOKKEEPING and (not name.endswith(_CREATED_ON_USE) or value)
    }
    found["_cells"] = [(name, each) for name, each in vars(cell)["_cells"].items() if name not in _BOOKKEEPING]
    found["recomputed"] = str(cell.get_scope()).startswith(RECOMPUTED)
    return found
