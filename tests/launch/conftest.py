"""A real Slurm of one node for the session, where the distribution's packages are installed."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import pytest

CONFIGURATION = """
ClusterName=harness
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
KillWait=5
MinJobAge=5
EnforcePartLimits=ALL
SchedulerParameters=sched_interval=2,bf_interval=1
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
PlugStackConfig={folder}/plugstack.conf
MailProg=/bin/true
TmpFS={folder}
NodeName={host} NodeAddr=127.0.0.1 Port={node} CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")


def _ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@pytest.fixture(scope="session")
def cluster():
    """Folder of a cluster that ``srun`` finds, gone with the session."""
    places = f"/usr/sbin:/sbin:{os.environ['PATH']}"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=places)]
    if missing or os.geteuid():
        pytest.skip(f"no Slurm here: {', '.join(missing) or 'only root starts one'}; apt-get install slurm-wlm munge")
    folder = Path(tempfile.mkdtemp(prefix="harness-slurm-"))
    folder.chmod(0o755)
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(mode=0o755)
    (folder / "plugstack.conf").write_text("")
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    host = socket.gethostname().partition(".")[0]
    controller, node = _ports(2)
    (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, folder=folder, controller=controller, node=node))
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def call(*command):
        return subprocess.run(command, env={**os.environ, "PATH": places}, capture_output=True, text=True, timeout=60)

    try:
        files = {name: f"--{name}-file={folder}/munge/{name}" for name in ("key", "pid", "log", "seed")}
        started = [
            call("munged", "--force", f"--socket={folder}/munge/socket", *files.values()),
            call("slurmctld", "-f", f"{folder}/slurm.conf"),
            call("slurmd", "-f", f"{folder}/slurm.conf"),
        ]
        end = time.monotonic() + 30
        while not call("sinfo", "-h", "-t", "idle", "-o", "%N").stdout.strip():
            if time.monotonic() > end:
                told = "; ".join(each.stderr.strip() for each in started if each.stderr.strip())
                pytest.skip(f"a Slurm can't be started here: {told or 'its node is not idle'}")
            time.sleep(0.1)
        yield folder
        call("scancel", "--user=root")
    finally:
        for name in ("slurmd.pid", "slurmctld.pid", "munge/pid"):
            _end(folder / name)
        if before is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = before
        shutil.rmtree(folder, ignore_errors=True)


def _end(file):
    """Ends the daemon of a pid file, which we started."""
    try:
        process = psutil.Process(int(file.read_text()))
        process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 10
        while process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > end:
                process.kill()
                return
            time.sleep(0.05)
    except (OSError, ValueError, psutil.NoSuchProcess):
        return
