"""Imports a module once and forks a rank from itself on each request: ``fork_server.py SOCKET MODULE``.

Run as a script and with the standard library alone: the module, and the harness that it belongs to, may be those of
another checkout. A request is a line of JSON, and so is the answer to it.
"""

import gc
import importlib
import importlib.util
import json
import os
import runpy
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


def _beside(name: str) -> Any:
    """A module of this folder, whichever harness can be imported."""
    spec = importlib.util.spec_from_file_location(f"_harness_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rank = _beside("rank")

CLOCK_NS = 50_000_000
"""By how much the clock that stamps files may be behind."""


def stamp(path: str) -> list[int]:
    """What changes with a file: modification time in ns, size, inode; empty where it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def preload(module: str) -> dict[str, Any]:
    """Imports a module and what it imports; the module itself is executed anew in each rank.

    Returns:
        Every source file that a rank would not read again, with its stamp, and the time in ns before any was read; and
        the Python threads that run beside this one, which a forked process would lack.
    """
    started = time.time_ns() - CLOCK_NS
    importlib.import_module(f"{module}.__main__")
    del sys.modules[f"{module}.__main__"]
    paths = {getattr(each, "__file__", None) for each in list(sys.modules.values())}
    gc.collect()
    gc.freeze()
    return {
        "started": started,
        "files": {path: stamp(path) for path in paths if path},
        "threads": [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()],
    }


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Forks what each request names, until the other end is closed.

    Returns:
        In a forked process, what it is to become; None in this one, at the end.
    """
    with suppress(ConnectionResetError), connection.makefile("r", encoding="utf-8") as requests:
        for line in requests:
            _reap()
            pids = []
            for process in json.loads(line):
                server, child = os.getpid(), os.fork()
                if not child:
                    os.setsid()
                    rank.end_with_parent()
                    return None if os.getppid() != server else process
                pids.append(child)
            connection.sendall(json.dumps(pids).encode() + b"\n")
    return None


def _reap() -> None:
    """Reaps the processes of earlier requests; not sooner, so that their ids are not given to others meanwhile."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def become(process: dict[str, Any], module: str) -> None:
    """Runs the module as ``python -m`` would in a process of its own, guarded as every rank is.

    Args:
        process: its ``environment``, ``folder`` and ``arguments``.
        module: what was preloaded.
    """
    os.environ.clear()
    os.environ.update(process["environment"])
    os.chdir(process["folder"])
    status = rank.guard(Path(process["folder"]))
    if status is not None:
        # Nothing of what was imported is to say goodbye here: that is the rank's.
        os._exit(status if status >= 0 else 128 - status)
    sys.path[:0] = [process["folder"]]
    sys.argv = [module, *process["arguments"]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(number: int, module: str) -> None:
    """Serves on a socket that was inherited, until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As a script, Python looks into this folder first; a rank does not.
    del sys.path[0]
    with socket.socket(fileno=number) as connection:
        connection.sendall(json.dumps(preload(module)).encode() + b"\n")
        process = serve(connection)
    if process is None:
        # Nothing was done with what was imported, so nothing of it is to be ended.
        os._exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    become(process, module)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
