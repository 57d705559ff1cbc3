"""Lets one process be any rank of any number, for compiling: MindSpore's groups exist, nothing is ever sent."""

import ctypes
import os
from pathlib import Path

_MANAGER = "_ZN9mindspore11distributed10collective17CollectiveManager"


def pretend_rank(rank: int, size: int, hardware: str) -> None:
    """Makes this process ``rank`` of ``size`` before anything is built.

    MindSpore has a communication library that only answers questions, and puts it in for its dry run on Ascend, which
    needs CANN's libraries. For GPU it is asked for directly, by the names of the functions in its shared library.

    Raises:
        RuntimeError: this MindSpore has no such library.
    """
    os.environ |= {"MS_SIMULATION_LEVEL": "0", "RANK_ID": str(rank), "RANK_SIZE": str(size)}
    import mindspore
    from mindspore import communication
    from mindspore.communication import GlobalComm

    if hardware == "ascend":
        communication.init()
        return
    path = Path(mindspore.__file__).parent / "lib" / "libmindspore_hardware_abstract.so"
    try:
        library = ctypes.CDLL(str(path))
        instance = getattr(library, f"{_MANAGER}8instanceEv")
        initialize = getattr(library, f"{_MANAGER}22InitializeDummyCommLibEv")
    except (OSError, AttributeError) as error:
        raise RuntimeError(f"MindSpore {mindspore.__version__} has no dummy communication library: {error}") from None
    shared_pointer = (ctypes.c_void_p * 2)()
    instance.argtypes = initialize.argtypes = [ctypes.c_void_p]
    initialize.restype = ctypes.c_bool
    instance(shared_pointer)
    if not initialize(shared_pointer[0]):
        raise RuntimeError("MindSpore's dummy communication library did not start")
    GlobalComm.WORLD_COMM_GROUP, GlobalComm.BACKEND, GlobalComm.INITED = "nccl_world_group", "nccl", True
