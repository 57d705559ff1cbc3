"""What the machine that ranks ran on is, as it tells itself: the one that started them may be another."""

import os
import platform
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from harness import devices
from harness.environment import Host, machine_key, memory, processor
from harness.errors import LaunchError
from harness.files import write_atomically

FILE = "machine.json"


class Machine(BaseModel):
    """A machine."""

    model_config = ConfigDict(extra="forbid")

    architecture: str
    processor: str
    cores: int
    """That ranks may use."""

    memory: int
    """GiB."""

    driver: str | None
    device_processes: int
    """Processes of others on the training devices when the ranks were started."""

    @classmethod
    def here(cls, hardware: str) -> "Machine":
        """This machine, now."""
        return cls(
            architecture=platform.machine(),
            processor=processor(),
            cores=len(os.sched_getaffinity(0)),
            memory=memory(),
            driver=devices.driver(hardware),
            device_processes=devices.processes(hardware),
        )

    @classmethod
    def read(cls, folder: Path) -> "Machine":
        """What the first node of a run left in its folder.

        Raises:
            LaunchError: it left nothing.
        """
        try:
            return cls.model_validate_json((folder / FILE).read_text(encoding="utf-8"))
        except (OSError, ValidationError) as error:
            told = f"the first node left no {FILE} in the run's folder: {error}; do the nodes share it?"
            raise LaunchError(told) from None

    def write(self, folder: Path) -> None:
        """Leaves it in a run's folder."""
        write_atomically(folder / FILE, self.model_dump_json())

    def host(self, hardware: str, device: str, binding: str) -> Host:
        """It, as a run remembers it.

        Args:
            hardware: that was trained on.
            device: its model, as a rank told; the processor where none did.
            binding: of ranks to cores.
        """
        key = machine_key(device or self.processor, self.processor, self.cores, self.memory)
        return Host(hardware, self.architecture, key, self.cores, self.driver, self.device_processes, binding)
