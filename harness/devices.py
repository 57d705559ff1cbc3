"""Which training devices this machine has, found without importing mindspore."""

import contextlib
import difflib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HardwareError

HARDWARE = ("cpu", "gpu", "ascend")

ASCEND_DRIVER = Path("/usr/local/Ascend/driver/version.info")

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


def driver(hardware: str) -> str | None:
    """Version of the device's driver; None where there is none or it is not told."""
    if hardware == "gpu":
        return (
            _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").partition("\n")[0].strip()
            or None
        )
    if hardware == "ascend":
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found = re.search(r"^Version=(\S+)", ASCEND_DRIVER.read_text(encoding="utf-8"), re.MULTILINE)
            return found[1] if found else None
    return None


def processes(hardware: str) -> int:
    """How many processes are on the training devices; 0 on CPU and where the tools don't tell."""
    if hardware == "gpu":
        ours = os.environ.get("CUDA_VISIBLE_DEVICES")
        chosen = [f"--id={ours}"] if ours else []
        return len(_output("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader", *chosen).split())
    if hardware == "ascend":
        ours = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
        visible = [int(number) for number in re.findall(r"\d+", ours)] if ours else None
        return len(npu_processes(_output("npu-smi", "info"), visible))
    return 0


def npu_processes(table: str, visible: list[int] | None = None) -> list[int]:
    """Process ids of the second table of ``npu-smi info``: device and chip, process id, name, memory.

    Args:
        table: the output.
        visible: devices that count; None for all.
    """
    rows = re.findall(r"^\|\s*(\d+)\s+\d+\s*\|\s*(\d+)\s*\|[^|]*\|[^|]*\|\s*$", table, re.MULTILINE)
    return [int(pid) for device, pid in rows if visible is None or int(device) in visible]


def _output(*command: str) -> str:
    """What a tool prints; empty where it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


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
