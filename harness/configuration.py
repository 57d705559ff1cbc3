"""The project's own settings: ``[tool.harness]`` of its pyproject.toml."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import PolicyError
from harness.gate.expected import Expected
from harness.gate.policy import Overrides, check_overrides

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Configuration:
    """What a project says of its gate."""

    policy: Overrides = field(default_factory=dict)
    """``[tool.harness.policy]``: metric or scope → fields of its policy."""

    expected: tuple[Expected, ...] = ()
    """``[[tool.harness.expected-failures]]``."""


def read(root: Path) -> Configuration:
    """The configuration of the project in ``root``; the defaults where it has none.

    Raises:
        PolicyError: the file is no TOML, or an entry can't be applied.
    """
    try:
        content = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Configuration()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"pyproject.toml can't be read: {error}") from None
    table = content.get("tool", {}).get("harness", {})
    policy, entries = table.get("policy", {}), table.get("expected-failures", [])
    section = "policy"
    try:
        check_overrides(policy)
        section = "expected-failures"
        expected = tuple(Expected.from_dict(entry) for entry in entries)
    except PolicyError as error:
        raise PolicyError(f"[tool.harness.{section}] in pyproject.toml: {error}") from None
    return Configuration(policy, expected)
