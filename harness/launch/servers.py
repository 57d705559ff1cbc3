"""The fork servers of this process: one for each interpreter and environment, as long as the code is what it was."""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import LaunchError
from harness.launch import fork_server
from harness.launch.child import start, wait_for_end
from harness.launch.request import OF_A_RUN

READY_SECONDS = 120.0
"""How long importing may take."""

ANSWER_SECONDS = 10.0
"""How long forking may take; a server that was stopped never answers."""

SETTLE_SECONDS = 2 * fork_server.CLOCK_NS / 1e9
"""Pause before a server is replaced: files written just now look as if they changed while they were imported."""

MOST = 4
"""Servers kept at once: a few hundred MiB each."""

_NOT_READ = ("HARNESS_", "PYTEST_")
"""Beginnings of variables that neither MindSpore nor Python reads when it starts."""


@dataclass(frozen=True)
class ForkedProcess:
    """What a server is asked to fork."""

    folder: Path
    arguments: Sequence[str]
    environment: Mapping[str, str]


class Forked:
    """Processes forked for one run; a ``supervise.Launcher``."""

    def __init__(self, server: "ForkServer", pids: Sequence[int]) -> None:
        self.server, self.pids = server, list(pids)

    def failure(self) -> str:
        """Why the processes can no longer run; empty while their server does."""
        status = self.server.process.poll()
        return "" if status is None else f"the fork server {ended(status)}; the next run starts another"

    def wait(self, seconds: float) -> None:
        """Waits until all have ended, but not longer than this."""
        wait_for_end(self.pids, seconds)


class ForkServer:
    """A process that has imported a module, and forks ranks that run it."""

    def __init__(self, python: Path, module: str, environment: Mapping[str, str]) -> None:
        """Starts it; it imports while this process goes on.

        Args:
            python: interpreter.
            module: run as ``python -m`` would.
            environment: of the interpreter.
        """
        self.owner = os.getpid()
        self._loaded: dict[str, Any] | None = None
        self._received = b""
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [str(python), fork_server.__file__, str(theirs.fileno()), module]
            self.process = start(command, Path("/"), environment, subprocess.DEVNULL, inherited=(theirs.fileno(),))

    def problem(self) -> str:
        """Why no rank may be forked from it; empty where one may. Waits until everything is imported."""
        try:
            if self._loaded is None:
                self._loaded = self._answer(READY_SECONDS)
        except LaunchError as error:
            return str(error)
        if self._loaded["threads"]:
            return f"importing starts threads ({', '.join(self._loaded['threads'][:3])}), which no forked process has"
        try:
            self.fork([])
        except LaunchError as error:
            return str(error)
        started = self._loaded["started"]
        for path, stamp in self._loaded["files"].items():
            if fork_server.stamp(path) != stamp or not stamp or stamp[0] >= started:
                return f"{Path(path).name} changed since it was imported"
        return ""

    def fork(self, processes: Sequence[ForkedProcess]) -> Forked:
        """Forks processes, each in a session of its own.

        Raises:
            LaunchError: the server is gone, or does not answer.
        """
        request = [
            {"folder": str(p.folder), "arguments": list(p.arguments), "environment": dict(p.environment)}
            for p in processes
        ]
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise LaunchError("the fork server is gone") from None
        return Forked(self, self._answer(ANSWER_SECONDS))

    def _answer(self, seconds: float) -> Any:
        while b"\n" not in self._received:
            if not select.select([self._socket], [], [], seconds)[0]:
                raise LaunchError(f"the fork server did not answer within {seconds:g} s")
            with contextlib.suppress(ConnectionResetError):
                if found := self._socket.recv(1 << 20):
                    self._received += found
                    continue
            raise LaunchError(f"the fork server {ended(self.process.wait())}")
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        """Ends it, and with it all that was forked from it."""
        self._socket.close()
        if os.getpid() == self.owner:
            self.process.kill()
            self.process.wait()


def ended(status: int) -> str:
    """How a process ended, in words."""
    return f"ended with {status}" if status >= 0 else f"was killed by {signal.Signals(-status).name}"


_running: dict[str, ForkServer] = {}


def warm(python: Path, module: str, environment: Mapping[str, str]) -> ForkServer:
    """The server for an interpreter, a module and an environment; started where there is none yet.

    What a library reads once, when it is loaded, is the server's environment, so another environment is another server.
    """
    own = {n: v for n, v in environment.items() if n not in OF_A_RUN and not n.startswith(_NOT_READ)}
    key = json.dumps([str(python), module, sorted(own.items())])
    server = _running.pop(key, None)
    if server is None or server.owner != os.getpid() or server.process.poll() is not None:
        server = ForkServer(python, module, own)
    _running[key] = server
    for oldest in list(_running)[:-MOST]:
        _running.pop(oldest).close()
    return server


def available(python: Path, module: str, environment: Mapping[str, str]) -> ForkServer:
    """A server that ranks may be forked from now; arguments as in ``warm``.

    Raises:
        LaunchError: there can be none; says why.
    """
    problem = ""
    # One whose code has changed, or that was stopped, is replaced once.
    for _ in range(2):
        server = warm(python, module, environment)
        problem = server.problem()
        if not problem:
            return server
        for key in [key for key, each in _running.items() if each is server]:
            del _running[key]
        server.close()
        time.sleep(SETTLE_SECONDS)
    raise LaunchError(problem)


@atexit.register
def close() -> None:
    """Ends all servers of this process."""
    while _running:
        _running.popitem()[1].close()
