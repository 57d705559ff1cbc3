"""``harness doctor``: what this machine offers for training, what is wrong, and how to mend it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

from harness.devices import HARDWARE, find
from harness.environment import processor
from harness.errors import HarnessError
from harness.launch.ports import reserved_port
from harness.locks import lock_folder

PROBE_SECONDS = 120


@dataclass(frozen=True)
class Finding:
    """One line of the table."""

    subject: str
    found: str
    fix: str = ""
    """What to do; empty where all is well."""


def examine(root: Path) -> list[Finding]:
    """Looks at everything the harness needs.

    Args:
        root: folder in which results will be written.
    """
    checks: list[Callable[[], Finding | list[Finding]]] = [
        _python,
        _mindspore,
        _numpy,
        _decorator,
        _backends,
        _toolkits,
        _machine,
        _ports,
        lambda: _folders(root),
    ]
    findings: list[Finding] = []
    for check in checks:
        result = check()
        findings += result if isinstance(result, list) else [result]
    return findings


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    fine = (3, 10) <= sys.version_info[:2] <= (3, 12)
    return Finding(
        "Python", found, "" if fine else "MindSpore 2.10 has wheels for Python 3.10 to 3.12: use one of those"
    )


def _mindspore() -> Finding:
    found = _version("mindspore")
    if found is None:
        return Finding("MindSpore", "not installed", "pip install 'mindspore>=2.10,<2.11'")
    fine = found.startswith("2.10")
    return Finding(
        "MindSpore", found, "" if fine else "the harness is written for 2.10: pip install 'mindspore>=2.10,<2.11'"
    )


def _numpy() -> Finding:
    found = _version("numpy") or "not installed"
    fine = found.startswith("1.")
    return Finding(
        "numpy", found, "" if fine else "MindSpore 2.10's operators fail with numpy 2: pip install 'numpy<2'"
    )


def _decorator() -> Finding:
    found = _version("decorator")
    fix = "" if found else "MindSpore's graph-kernel compiler needs it: pip install decorator"
    return Finding("decorator", found or "not installed", fix)


def _backends() -> list[Finding]:
    """Each back end in a process of its own: one that can't load may end its process."""
    findings = []
    for hardware in HARDWARE:
        devices = find(hardware)
        loads, why = _probe(hardware)
        found = f"loads; {devices.reason}" if loads else f"does not load: {why}; {devices.reason}"
        fix = ""
        if not loads and hardware == "cpu":
            fix = "the CPU back end is needed by every suite: reinstall mindspore in a fresh environment"
        elif not loads and devices.count:
            need = (
                "CANN and its set_env.sh"
                if hardware == "ascend"
                else "CUDA 11's libraries (extra gpu) and name them in CUDA_HOME and LD_LIBRARY_PATH"
            )
            fix = f"{devices.count} devices are here but MindSpore can't use them; install {need}"
        findings.append(Finding(f"back end {hardware}", found, fix))
    return findings


def _probe(hardware: str) -> tuple[bool, str]:
    command = [sys.executable, "-m", "harness.trainer.probe", hardware]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False, f"no answer within {PROBE_SECONDS} s"
    lines = done.stdout.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else {}
    except ValueError:
        answer = {}
    if answer.get("works"):
        return True, ""
    return False, answer.get("why") or f"the probe ended with {done.returncode}"


def _toolkits() -> list[Finding]:
    cann = os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME")
    cuda = os.environ.get("CUDA_HOME")
    return [
        Finding("CANN", _version_in(Path(cann) / "version.cfg") if cann else "ASCEND_HOME_PATH is not set"),
        Finding("CUDA", _version_in(Path(cuda) / "version.json") if cuda else "CUDA_HOME is not set"),
        Finding("driver ascend", _output("npu-smi", "-v")),
        Finding("driver gpu", _output("nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader")),
    ]


def _version_in(path: Path) -> str:
    """The first version number in a file, whatever its format."""
    try:
        found = re.search(r"\d+\.\d+[\w.]*", path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        found = None
    return found[0] if found else f"no version in {path.name}"


def _output(command: str, *arguments: str) -> str:
    if not shutil.which(command):
        return f"{command} is not installed"
    try:
        done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{command} failed: {type(error).__name__}"
    lines = done.stdout.strip().splitlines()
    return lines[0] if lines else f"{command} printed nothing"


def _machine() -> list[Finding]:
    cores = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory()
    nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1
    free = memory.available / 2**30
    fix = "" if free >= 4 else "a rank takes about 1.5 GiB: end other jobs first"
    return [
        Finding("cores", f"{cores} of {os.cpu_count()} ({processor()})"),
        Finding("memory", f"{memory.total / 2**30:.0f} GiB, {free:.0f} available", fix),
        Finding("NUMA", f"{nodes} node(s)"),
    ]


def _ports() -> Finding:
    try:
        with reserved_port() as port:
            return Finding("ports", f"{port} is free")
    except HarnessError as error:
        return Finding("ports", "none is free", str(error))


def _folders(root: Path) -> list[Finding]:
    findings = []
    try:
        locks = str(lock_folder())
    except HarnessError as error:
        findings.append(Finding("lock folder", "missing", str(error)))
    else:
        findings.append(_writable("lock folder", Path(locks), "set TMPDIR to a writable folder"))
    findings.append(_writable("results folder", root, "change to a writable folder or use pytest --results DIR"))
    return findings


def _writable(subject: str, folder: Path, fix: str) -> Finding:
    try:
        free = shutil.disk_usage(folder).free / 2**30
        probe = folder / f".harness-probe-{os.getpid()}"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        return Finding(subject, f"can't be written: {error.strerror}", fix)
    full = "" if free >= 1 else "less than 1 GiB is free: make room"
    return Finding(subject, f"writable, {free:.0f} GiB free", full)
