"""Names of the user's functions, and the functions."""

import importlib
import re
from collections.abc import Callable
from typing import Any

from harness.errors import ScenarioError

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_KINDS_OF_DATA = ("text", "records", "mindrecord")


def is_reference(text: str) -> bool:
    """Whether a text is ``package.module:function``."""
    return _REFERENCE.fullmatch(text) is not None


def makes_data(data: str) -> bool:
    """Whether a scenario's data comes from a function of the user's."""
    return is_reference(data) and data.partition(":")[0] not in _KINDS_OF_DATA


def user_function(field: str, reference: str) -> Callable[..., Any]:
    """The function that ``package.module:function`` names.

    Raises:
        ScenarioError: there is no such module or function.
    """
    module, _, name = reference.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ScenarioError(f"{field}={reference!r} can't be loaded: {error}; name an importable function") from error
    return function  # type: ignore[no-any-return]
