"""Ports that no other session of the harness, and no other program, is using."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from harness.errors import LaunchError
from harness.locks import lock_folder

# Below the range from which Linux gives ports to outgoing connections, so that none is taken between test and use.
FIRST, LAST = 18_000, 28_000

_TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
_LISTENS = "0A"
"""State of a socket, in Linux's tables."""


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


def wait_for_listener(port: int, seconds: float) -> bool:
    """Whether a process listens on a port of this machine within so many seconds; nothing is sent to it."""
    end = time.monotonic() + seconds
    while not _is_listened_to(port):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _is_listened_to(port: int) -> bool:
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                    return True
    return False
