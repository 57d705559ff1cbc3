"""Lines of logs of any size and any content, in constant memory."""

from collections.abc import Iterator
from pathlib import Path

LONGEST = 65_536
"""Bytes of a line that are looked at; the rest of it is passed over."""

BLOCK = 2**20


def lines(path: Path) -> Iterator[str]:
    """The lines of a file, without their ends.

    A carriage return ends a line as well: progress bars write one after the other over it. Bytes that are no UTF-8 are
    replaced. Of a line longer than 64 KiB the beginning is given.

    Raises:
        OSError: the file can't be read.
    """
    held, passing = b"", False
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            *whole, rest = block.replace(b"\r", b"\n").split(b"\n")
            for line in whole:
                if not passing:
                    yield (held + line)[:LONGEST].decode("utf-8", "replace")
                held, passing = b"", False
            if passing:
                continue
            held += rest
            if len(held) > LONGEST:
                yield held[:LONGEST].decode("utf-8", "replace")
                held, passing = b"", True
    if held:
        yield held[:LONGEST].decode("utf-8", "replace")
