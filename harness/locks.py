"""Locks that all sessions of one user on this machine share."""

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import ReadWriteLock

from harness.errors import LaunchError


def lock_folder() -> Path:
    """Folder of the locks, which nobody else may write.

    Raises:
        LaunchError: it can't be made, or is another user's.
    """
    folder = Path(tempfile.gettempdir()) / f"mindspore-harness-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise LaunchError(f"the lock folder {folder} can't be made: {error.strerror}; set TMPDIR") from None
    if not stat.S_ISDIR(found.st_mode):
        raise LaunchError(f"the lock folder {folder} is no folder; remove it or set TMPDIR")
    if found.st_uid != os.getuid():
        raise LaunchError(f"the lock folder {folder} belongs to user {found.st_uid}, not to you; set TMPDIR")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise LaunchError(f"the lock folder {folder} may be written by others (mode {mode:o}); chmod 700 it")
    return folder


@contextmanager
def device_lock(hardware: str, shared: bool = False) -> Iterator[None]:
    """Holds the devices of a kind, alone or beside others that share them too.

    Whoever wants them alone waits for all who share them, and nobody who comes later gets in before.

    Args:
        hardware: ``cpu``, ``gpu`` or ``ascend``.
        shared: whether others may share them meanwhile.

    Raises:
        LaunchError: the lock can't be written.
    """
    path = lock_folder() / f"device-{hardware}.db"
    try:
        lock = ReadWriteLock(path, is_singleton=False)
        (lock.acquire_read if shared else lock.acquire_write)()
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LaunchError(f"the lock {path} can't be written: {reason}; free its disk or set TMPDIR") from None
    try:
        yield
    finally:
        lock.release()
        lock.close()
