"""Commands as somebody would type them, in a project of their own."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
OURS = ("CI", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "GITHUB_STEP_SUMMARY")
"""Variables that say something of this session, and nothing of theirs."""


def called(*command, cwd, **environment):
    """Runs a command to its end."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def module(folder, *command):
    """Runs ``python -m …`` on this tree's code in a folder."""
    return called(sys.executable, "-m", *command, cwd=folder, PYTHONPATH=str(ROOT))


def ends(process, seconds=20):
    """Whether a process is gone within some seconds: the system ends a killed one in its own time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if psutil.Process(process).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def running_in(folder):
    """Processes that have a folder, or one below it, on their command line or work in it: forked ones have no other."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if process.status() != psutil.STATUS_ZOMBIE and (str(folder) in words or str(folder) in process.cwd()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            pass
    return found
