"""What a rank process is asked to do, and the names of the files through which it answers."""

import shutil
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from harness.files import write_atomically

REQUEST = "request.json"
PROGRESS = "progress"
REQUESTED = "HARNESS_REQUESTED"
"""Environment variable with the time, in seconds since 1970, at which a run was asked for."""

GRAPHS = "HARNESS_GRAPHS"
"""Environment variable with the folder of the session's compiled graphs; absent in runs that compile all of theirs."""

OF_A_RUN = ("MS_ROLE", "MS_WORKER_NUM", "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_NODE_ID", "RANK_ID", "RANK_SIZE")
"""Variables that say which process of a run one is; MindSpore reads them when it joins the others."""

STARTED = "started"
"""Number of a cluster's job, written when its nodes were given."""

OWN_GRAPHS = "graphs"
"""Folder of a run's own compiled graphs, removed at its end."""

MASTER = "master"
"""Address and port of MindSpore's scheduler, on the first node."""


class Request(BaseModel):
    """One run, as its ranks read it."""

    model_config = ConfigDict(extra="forbid")

    scenario: dict[str, Any]
    hardware: str
    root: str
    """Folder that the user's modules and relative text files are found in."""

    fault: str | None = None
    until: int | None = None
    """Update after which the run is stopped on purpose; None trains to the end."""

    resume: int | None = None
    """Update whose checkpoint, in the run's folder, is gone on from; None begins anew."""

    def write(self, folder: Path) -> None:
        """Leaves the request where the ranks look for it."""
        write_atomically(folder / REQUEST, self.model_dump_json(indent=1))

    @classmethod
    def read(cls, folder: Path) -> "Request":
        """The request of a run folder."""
        return cls.model_validate_json((folder / REQUEST).read_text(encoding="utf-8"))


def report_file(folder: Path, rank: int) -> Path:
    """Where a rank leaves its report, complete or not at all."""
    return folder / f"rank-{rank}.json"


_LEFT = ("rank-*.*", "node-*.exit", "scheduler.*", "launcher.log", "machine.json", "trace-*.jsonl")


def clear(folder: Path) -> None:
    """Removes what an earlier run left in its folder, so that nobody takes it for this one's; not its checkpoints."""
    for pattern in (*_LEFT, PROGRESS, STARTED, MASTER):
        for path in folder.glob(pattern):
            path.unlink()
    for name in ("triage", "msrun", OWN_GRAPHS):
        shutil.rmtree(folder / name, ignore_errors=True)
