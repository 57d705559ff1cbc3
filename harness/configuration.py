"""The project's own settings: ``[tool.harness]`` of its pyproject.toml."""

import difflib
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness.errors import PolicyError
from harness.gate.expected import Expected
from harness.gate.policy import Overrides, check_overrides

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


KNOWN = ("baselines", "policy", "expected-failures")


@dataclass(frozen=True)
class Configuration:
    """What a project says of its gate."""

    baselines: str = "baselines"
    """``[tool.harness] baselines``: their folder, relative to the project."""

    policy: Overrides = field(default_factory=dict)
    """``[tool.harness.policy]``: metric or scope → fields of its policy."""

    expected: tuple[Expected, ...] = ()
    """``[[tool.harness.expected-failures]]``."""


def read(root: Path) -> Configuration:
    """The configuration of the project in ``root``; the defaults where it has none.

    Raises:
        PolicyError: the file is no TOML, or an entry is unknown or can't be applied.
    """
    try:
        content = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Configuration()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"pyproject.toml can't be read: {error}") from None
    table = content.get("tool", {}).get("harness", {})
    for name in table:
        if name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(KNOWN)}"
            raise PolicyError(f"[tool.harness] in pyproject.toml has no setting {name!r}; {hint}")
    baselines = table.get("baselines", Configuration.baselines)
    if (
        not isinstance(baselines, str)
        or PurePosixPath(baselines).is_absolute()
        or ".." in PurePosixPath(baselines).parts
    ):
        raise PolicyError(
            f"[tool.harness] baselines={baselines!r} in pyproject.toml must name a folder below the project's"
        )
    policy, entries = table.get("policy", {}), table.get("expected-failures", [])
    section = "policy"
    try:
        check_overrides(policy)
        section = "expected-failures"
        expected = tuple(Expected.from_dict(entry) for entry in entries)
    except PolicyError as error:
        raise PolicyError(f"[tool.harness.{section}] in pyproject.toml: {error}") from None
    return Configuration(baselines, policy, expected)
