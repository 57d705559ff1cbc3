"""Tensors from rank to rank."""

from collections import deque
from typing import Any

import numpy as np
from mindspore import Tensor, mint
from mindspore.communication import GlobalComm

from harness.trainer.device import wait
from harness.trainer.recorder import Recorder


class Messages:
    """Buffered sends and blocking receives of float32 tensors of one shape, in order between each two ranks."""

    def __init__(self, shape: tuple[int, ...], recorder: Recorder) -> None:
        self.shape = shape
        self.recorder = recorder
        self.size = 4 * int(np.prod(shape))
        """Bytes of one."""

        self._under_way: deque[tuple[Any, Tensor]] = deque()

    def send(self, tensor: Tensor, peer: int, name: str) -> None:
        """Hands a tensor over and goes on."""
        with self.recorder.span("send", name, peer, self.size):
            handle = mint.distributed.isend(tensor, dst=peer, group=GlobalComm.WORLD_COMM_GROUP)
        self._under_way.append((handle, tensor))

    def receive(self, peer: int, name: str) -> Tensor:
        """Waits for the next tensor of a rank."""
        tensor = Tensor(np.empty(self.shape, np.float32))
        with self.recorder.span("receive", name, peer, self.size):
            mint.distributed.recv(tensor, src=peer, group=GlobalComm.WORLD_COMM_GROUP)
            wait()
        return tensor

    def flush(self) -> None:
        """Waits until all that was sent is gone, and lets go of it."""
        while self._under_way:
            handle, _ = self._under_way.popleft()
            handle.wait()
