"""Ports that no other session of the harness, and no other program, is using."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from harness.errors import LaunchError
from harness.locks import lock_folder

# Below the range from which Linux gives ports to outgoing connections, so that none is taken between test and use.
FIRST, LAST = 18_000, 28_000


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
