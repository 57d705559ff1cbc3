"""Which training devices this machine has, found without importing mindspore."""

import difflib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HardwareError

HARDWARE = ("cpu", "gpu", "ascend")

CPU_RANKS_PER_CORE = 4
"""Ranks on CPU are processes; correctness survives sharing a core among so many."""


@dataclass(frozen=True)
class Devices:
    """What a machine offers of one kind of hardware."""

    count: int
    """Ranks that can run at once; 0 where there is no such device."""

    reason: str
    """Why it is 0, or what was found."""


def check_hardware(name: str) -> str:
    """``name``, if the harness knows it.

    Raises:
        HardwareError: it does not.
    """
    if name not in HARDWARE:
        near = difflib.get_close_matches(name, HARDWARE, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise HardwareError(f"hardware {name!r} is unknown; choose from {', '.join(HARDWARE)}{hint}")
    return name


def find(hardware: str) -> Devices:
    """The devices of this machine.

    Raises:
        HardwareError: the name is unknown.
    """
    return {"cpu": _cpu, "gpu": _gpu, "ascend": _ascend}[check_hardware(hardware)]()


def _cpu() -> Devices:
    cores = len(os.sched_getaffinity(0))
    return Devices(cores * CPU_RANKS_PER_CORE, f"{cores} cores")


def _gpu() -> Devices:
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    except FileNotFoundError:
        return Devices(0, "no gpu on this machine: nvidia-smi is not installed")
    except (OSError, subprocess.SubprocessError) as error:
        return Devices(0, f"no gpu on this machine: nvidia-smi failed ({type(error).__name__})")
    count = sum(line.startswith("GPU ") for line in listed.splitlines())
    return Devices(count, f"{count} by nvidia-smi" if count else "no gpu on this machine: nvidia-smi lists none")


def _ascend() -> Devices:
    count = sum(path.name.removeprefix("davinci").isdigit() for path in Path("/dev").glob("davinci*"))
    return Devices(
        count, f"{count} as /dev/davinci*" if count else "no ascend on this machine: there is no /dev/davinci*"
    )
