"""The groups of ranks that talk with each other, as MindSpore knows them."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import mindspore as ms
from mindspore import communication
from mindspore.communication import GlobalComm

from harness.launch.rank import end_with_parent
from harness.layout import Layout

PAUSES = [0.25] * 8 + [0.5] * 6
"""Seconds before each look for the other ranks. MindSpore gives up after twenty looks of three seconds; the last six
stay its own, for ranks that come late."""


@dataclass(frozen=True)
class Groups:
    """Names of the groups that a rank is in; empty where it would be alone."""

    data: str = ""
    """Ranks that hold the same part of the model and train on other rows."""

    tensor: str = ""
    """Ranks that hold the shards of the same layers."""

    model: str = ""
    """Ranks that together hold one replica of the whole model."""

    ends: str = ""
    """This rank and its like on the other end of the pipeline; empty on stages between."""

    @classmethod
    def create(cls, layout: Layout, rank: int) -> "Groups":
        """Makes the groups of a rank. All ranks must come here, after ``communication.init``."""
        stage, replica, shard = layout.position(rank)
        model = [r for r in range(layout.world_size) if layout.position(r)[1] == replica]
        ends = [r for r in model if layout.position(r)[2] == shard and layout.position(r)[0] in (0, layout.pp - 1)]
        return cls(
            data=_group("data", _with(rank, layout.groups("dp")), layout),
            tensor=_group("tensor", _with(rank, layout.groups("tp")), layout),
            model=_group("model", model, layout),
            ends=_group("ends", ends, layout) if stage in (0, layout.pp - 1) else "",
        )


def _with(rank: int, groups: list[list[int]]) -> list[int]:
    return next(group for group in groups if rank in group)


def _group(kind: str, ranks: list[int], layout: Layout) -> str:
    if len(ranks) == 1:
        return ""
    if len(ranks) == layout.world_size:
        return str(GlobalComm.WORLD_COMM_GROUP)
    name = f"{kind}-{'-'.join(str(rank) for rank in ranks)}"
    communication.create_group(name, ranks)
    return name


def prime_messages(rank: int) -> None:
    """Lets the point-to-point calls of ``mint.distributed`` work beside Ascend.

    They look this rank up under the name of Ascend's world group, which was bound as a default argument when MindSpore
    was imported, even where another group is given; on CPU and GPU there is no such group.
    """
    if ms.get_context("device_target") != "Ascend":
        from mindspore.mint.distributed import distributed as internals

        internals._GROUP_RANK_CACHE["hccl_world_group"] = rank


@contextmanager
def impatient() -> Iterator[None]:
    """Cuts short the pauses that MindSpore makes while ranks look for each other.

    On CPU a rank that looks for another's address a moment too early sleeps three seconds (2.10) before it looks again,
    and since one of them always is the first, each start of several ranks took that long. A signal ends such a sleep;
    what waits for a socket is started again by the system.
    """
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, False)
    waiting, waker = os.getpid(), os.fork()
    if not waker:
        # No thread could: MindSpore holds on to the interpreter all the while.
        end_with_parent()
        for pause in PAUSES:
            time.sleep(pause)
            if os.getppid() == waiting:
                os.kill(waiting, signal.SIGALRM)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(waker, signal.SIGKILL)
        os.waitpid(waker, 0)
        signal.signal(signal.SIGALRM, before)
