"""A real PostgreSQL server for the session, where the distribution's packages are installed."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest


def _programs() -> Path | None:
    """Folder of ``initdb`` and ``pg_ctl``; Debian keeps them out of PATH."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders and (folders[-1] / "initdb").exists() else None


def _owner() -> str | None:
    """Whose processes the server's are: PostgreSQL refuses to run as root."""
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"


@pytest.fixture(scope="session")
def postgres():
    """URL of an empty database, gone with the session."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server here: apt-get install postgresql, or put its pg_ctl on PATH")
    owner = _owner()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="harness-postgres-"))
    if owner:
        shutil.chown(folder, owner)

    def call(program, *arguments):
        command = [str(programs / program), *arguments]
        subprocess.run(command, user=owner, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=120)

    call("initdb", "-D", f"{folder}/data", "-U", "harness", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    call("pg_ctl", "-D", f"{folder}/data", "-o", options, "-l", f"{folder}/log", "-w", "start")
    try:
        yield f"postgresql://harness@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)
