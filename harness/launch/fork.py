"""Ranks on this machine, forked from a process that has imported MindSpore already."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from harness.launch.code import Code
from harness.launch.ports import reserved_port, wait_for_listener
from harness.launch.servers import Forked, ForkedProcess, ForkServer, available

LISTENING_SECONDS = 20.0
"""How long the scheduler may take until it listens; ranks are forked then all the same, and ask until it does."""


@dataclass(frozen=True)
class Forking:
    """Stands for a launcher's command line: ranks of one run, and who forks them."""

    server: ForkServer
    folder: Path
    arguments: Sequence[str]
    ranks: int
    port: int | None
    """Of the scheduler that brings several ranks together."""

    def start(self, environment: Mapping[str, str]) -> Forked:
        """Forks the scheduler, where there is one, and then the ranks.

        The ranks are forked when the scheduler listens: one that comes too early asks again after a second or two only,
        and all others wait for it.

        Raises:
            LaunchError: the server is gone, or does not answer.
        """
        if self.port is None:
            return self._fork([environment])
        # MindSpore's own environment for starting without msrun.
        common = {
            **environment,
            "MS_WORKER_NUM": str(self.ranks),
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(self.port),
        }
        scheduler = self._fork([{**common, "MS_ROLE": "MS_SCHED"}])
        wait_for_listener(self.port, LISTENING_SECONDS)
        own = [{"MS_NODE_ID": str(rank), "RANK_ID": str(rank)} for rank in range(self.ranks)]
        ranks = self._fork([{**common, "MS_ROLE": "MS_WORKER", **each} for each in own])
        return Forked(self.server, [*scheduler.pids, *ranks.pids])

    def _fork(self, environments: Sequence[Mapping[str, str]]) -> Forked:
        return self.server.fork([ForkedProcess(self.folder, self.arguments, each) for each in environments])


@contextmanager
def command(
    ranks: int, folder: Path, module: str, arguments: Sequence[str], code: Code, environment: Mapping[str, str]
) -> Iterator[Forking]:
    """What forks ``ranks`` processes that run a module, and with several the scheduler that brings them together.

    Args:
        ranks: how many.
        folder: of the run.
        module: what each runs, as ``python -m`` would.
        arguments: of the module.
        code: whose code.
        environment: of the run.

    Raises:
        LaunchError: no process can be forked here; says why.
    """
    server = available(code.python, module, environment)
    with reserved_port() if ranks > 1 else nullcontext() as port:
        yield Forking(server, folder, arguments, ranks, port)
