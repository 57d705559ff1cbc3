"""Waiting for a device."""

import mindspore as ms
from mindspore.common.api import _pynative_executor


def wait() -> None:
    """Returns when everything that was begun is done, so that a time can be taken.

    On CPU a graph is done when its call returns, and MindSpore knows no device to wait for; single operators are still
    handed over to a thread of their own.
    """
    if ms.get_context("device_target") != "CPU":
        ms.runtime.synchronize()
    elif ms.get_context("mode") == ms.PYNATIVE_MODE:
        _pynative_executor.sync()
