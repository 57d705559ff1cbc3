"""Ports that no other session of the harness, and no other program, is using."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from harness.errors import LaunchError

# Below the range from which Linux gives ports to outgoing connections, so that none is taken between test and use.
FIRST, LAST = 18_000, 28_000


def lock_folder() -> Path:
    """Folder of the locks that all sessions of one user on this machine share.

    Raises:
        LaunchError: it can't be made.
    """
    folder = Path(tempfile.gettempdir()) / f"mindspore-harness-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"the lock folder {folder} can't be made: {error.strerror}; set TMPDIR") from None
    return folder


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that is free now and that no other session takes before the context ends.

    Raises:
        LaunchError: every port of the range is in use.
    """
    start = os.getpid() * 7 % (LAST - FIRST)
    for offset in range(LAST - FIRST):
        port = FIRST + (start + offset) % (LAST - FIRST)
        lock = FileLock(lock_folder() / f"port-{port}.lock")
        try:
            with lock.acquire(timeout=0):
                if _is_free(port):
                    yield port
                    return
        except Timeout:
            continue
    raise LaunchError(f"no port between {FIRST} and {LAST} is free; end the jobs that hold them")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
