"""Files that are either the old one or the new one, never a part."""

import os
import tempfile
from pathlib import Path

from harness.errors import ResultsError


def write_atomically(path: Path, text: str) -> None:
    """Writes beside the target, syncs, and renames.

    Raises:
        ResultsError: the disk is full or the folder can't be written; the old file is untouched.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        where = f"{path.parent.name}/{path.name}"
        raise ResultsError(
            f"{where} can't be written: {error.strerror}; free the disk or name another folder"
        ) from None


def sync(path: Path) -> None:
    """Has what was written to a file, or the names in a folder, reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def tail(path: Path, lines: int, limit: int = 65_536) -> list[str]:
    """The last lines of a log, read from at most its last ``limit`` bytes; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - limit))
            content = file.read()
    except OSError:
        return []
    return content.decode("utf-8", "replace").splitlines()[-lines:]
