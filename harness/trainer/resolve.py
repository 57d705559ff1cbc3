"""Finds the user's functions by name."""

import importlib
from collections.abc import Callable
from typing import Any

from harness.errors import ScenarioError


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
