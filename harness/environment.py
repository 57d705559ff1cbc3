"""Where a run was measured: what its numeric values depend on, and which machine its times belong to."""

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict


class Environment(BaseModel):
    """What numeric values depend on; a baseline remembers it, and a verdict names what changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hardware: str
    architecture: str
    mindspore: str
    data: str
    threads: int | None = None
    """Threads of each rank; None where nobody wrote it down."""

    driver: str | None = None
    """Version of the device's driver; None on CPU."""

    binding: str | None = None
    """How ranks were bound to cores; None where they were not."""

    def differences(self, other: "Environment") -> list[str]:
        """What differs, as ``name: ours → theirs``; what one of the two does not know is no difference."""
        mine, theirs = self.model_dump(exclude_none=True), other.model_dump(exclude_none=True)
        return [f"{name}: {mine[name]} → {theirs[name]}" for name in mine if mine[name] != theirs.get(name, mine[name])]

    @property
    def essentials(self) -> "Environment":
        """Without the circumstances that numbers should not depend on, and that explain it when they do."""
        return self.model_copy(update={"threads": None, "driver": None, "binding": None})


@dataclass(frozen=True)
class Host:
    """Where ranks run, as the process that starts them sees it."""

    hardware: str
    architecture: str
    machine: str
    """Key of the kind of machine."""

    cores: int = 1
    """Cores that ranks on CPU share."""

    driver: str | None = None
    device_processes: int = 0
    """Processes of others on the training devices when the ranks were started; always 0 on CPU, where the ranks
    measure the load instead."""

    binding: str = "none"
    """How ranks were bound to cores."""

    def environment(self, mindspore: str, data: str, threads: int | None = None) -> Environment:
        """What numbers that were found here depend on.

        Args:
            mindspore: version.
            data: digest of the corpus.
            threads: of each rank; None where nobody wrote it down.
        """
        return Environment(
            hardware=self.hardware,
            architecture=self.architecture,
            mindspore=mindspore,
            data=data,
            threads=threads,
            driver=self.driver,
            binding=None if self.binding == "none" else self.binding,
        )


def processor() -> str:
    """The processor's model name, without the machine's."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.machine()


def memory() -> int:
    """GiB of this machine."""
    return round(psutil.virtual_memory().total / 2**30)


def machine_key(device: str, processor: str, cores: int, memory: int) -> str:
    """Names the kind of machine that a time belongs to: processor, cores and memory, no host name.

    Args:
        device: model of the device that trains.
        processor: of the machine.
        cores: that ranks may use.
        memory: GiB.
    """
    words = "".join(c if c.isalnum() else "-" for c in device.lower()).strip("-")
    digest = hashlib.sha256(f"{device}|{processor}|{cores}|{memory}".encode()).hexdigest()[:6]
    return f"{words[:40]}-{cores}c-{memory}g-{digest}"
