"""Training text of one record a line, and the lines that are no good. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

SHOWN = 5
"""Lines that a summary names of each kind."""


class Bad(NamedTuple):
    """A line that nothing can be learned from."""

    line: int
    """Counted from 1."""

    kind: str
    """``empty``, ``over-long`` or ``not UTF-8``."""

    detail: str
    """Its length, or where its encoding breaks; empty where there is nothing to say."""


def split(content: bytes, longest: int) -> tuple[list[bytes], list[Bad]]:
    """The good records of a file, and what is wrong with the others.

    Args:
        content: lines, each a record; what follows the last line's end is one only if there is something.
        longest: bytes of the longest record that fits.

    Returns:
        Good records in their order, without line ends; bad ones in theirs.
    """
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    good, bad = [], []
    for number, line in enumerate(lines, start=1):
        record = line.removesuffix(b"\r")
        if not record.strip():
            bad.append(Bad(number, "empty", ""))
            continue
        try:
            record.decode("utf-8")
        except UnicodeDecodeError as error:
            bad.append(Bad(number, "not UTF-8", f"byte {error.start}"))
            continue
        if len(record) > longest:
            bad.append(Bad(number, "over-long", f"{len(record)} bytes of {longest}"))
        else:
            good.append(record)
    return good, bad


def summary(bad: Sequence[Bad], total: int) -> str:
    """One line: how many records are bad, of which kind, and where."""
    parts = []
    for kind in dict.fromkeys(each.kind for each in bad):
        own = [each for each in bad if each.kind == kind]
        places = [f"{each.line} ({each.detail})" if each.detail else str(each.line) for each in own[:SHOWN]]
        more = f" and {len(own) - SHOWN} more" if len(own) > SHOWN else ""
        parts.append(f"{len(own)} {kind} in line {', '.join(places)}{more}")
    return f"{len(bad)} of {total} records are bad: {'; '.join(parts)}"
