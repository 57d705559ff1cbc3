"""The project's own settings: ``[tool.harness]`` of its pyproject.toml."""

import sys
from pathlib import Path

from harness.errors import PolicyError
from harness.gate.policy import Overrides, check_overrides

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_overrides(root: Path) -> Overrides:
    """``[tool.harness.policy]``: metric or scope → fields of its policy; empty where there is none.

    Raises:
        PolicyError: the file is no TOML, or an entry can't be applied.
    """
    try:
        content = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"pyproject.toml can't be read: {error}") from None
    overrides = content.get("tool", {}).get("harness", {}).get("policy", {})
    try:
        check_overrides(overrides)
    except PolicyError as error:
        raise PolicyError(f"[tool.harness.policy] in pyproject.toml: {error}") from None
    return overrides  # type: ignore[no-any-return]
