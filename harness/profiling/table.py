"""CSV files of a profiler's folder."""

import csv
from pathlib import Path

from harness.errors import ProfileError

Row = dict[str, str]


def find(folder: Path, pattern: str) -> Path | None:
    """The newest file below a folder that matches a pattern."""
    return max(folder.rglob(pattern), key=lambda path: path.stat().st_mtime_ns, default=None)


def read(path: Path, *needed: str) -> list[Row]:
    """The rows of a file.

    Args:
        path: the file.
        needed: columns that it must have.

    Raises:
        ProfileError: it can't be read, lacks a column, or is cut off within a row.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names, rows = reader.fieldnames or (), list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ProfileError(f"{path.name} can't be read: {error}") from None
    lacking = [name for name in needed if name not in names]
    if lacking:
        raise ProfileError(f"{path.name} lacks the column {lacking[0]!r}: no profiler of MindSpore wrote it")
    for number, row in enumerate(rows, start=2):
        if None in row or any(row[name] is None for name in needed):
            raise ProfileError(f"{path.name} is cut off or damaged in line {number}; profile again")
    return rows


def number(row: Row, column: str, path: Path) -> float:
    """The number in a column; an empty one is 0.

    Raises:
        ProfileError: it is none.
    """
    text = row[column].strip()
    try:
        return float(text) if text else 0.0
    except ValueError:
        raise ProfileError(f"{path.name}: {column} is {text!r}, which is no number; profile again") from None
