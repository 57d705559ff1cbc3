"""Libraries that let MindSpore's GPU plug-in be loaded where there is no CUDA.

Compiling a graph needs the plug-in, the plug-in needs CUDA's libraries to be there, and nothing calls them before a
device is opened. So libraries are made that have the asked-for names and answer every call with an error.
"""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.errors import HarnessError

LIBRARIES = (
    "libcublas.so.11",
    "libcuda.so.1",
    "libcudart.so.11.0",
    "libcudnn.so.8",
    "libcufft.so.10",
    "libcurand.so.10",
    "libcusolver.so.11",
    "libcusparse.so.11",
    "libnvrtc.so.11.2",
)
VERSIONED = {"libcudart.so.11.6.55": "libcudart.so.11.0", "libcudnn.so.8.9": "libcudnn.so.8"}
"""Names in which MindSpore looks for a version → what they stand for."""

NVCC = "#!/bin/sh\necho 'Cuda compilation tools, release 11.6, V11.6.55'\n"
_NO_DEVICE = 100
"""CUDA_ERROR_NO_DEVICE and cudaErrorNoDevice."""


class SetupError(HarnessError):
    """The front end can't be set up here."""


def folder() -> Path:
    """Where the libraries are kept, for this version of MindSpore."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = re.sub(r"[^\w.]", "-", importlib.metadata.version("mindspore"))
    return cache / "mindspore-harness" / f"front-end-{version}"


def missing() -> str:
    """Why nothing can be compiled for GPU yet; empty where it can."""
    if (folder() / "ready").exists():
        return ""
    return "the front end is not set up; run `harness audit --setup`"


def environment() -> dict[str, str]:
    """What a process that compiles needs in its environment."""
    home = str(folder())
    return {
        "CUDA_HOME": home,
        "LD_LIBRARY_PATH": f"{home}/lib64",
        "PATH": f"{home}/bin{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def set_up() -> Path:
    """Makes the libraries, a few hundred kilobytes in some seconds; nothing is downloaded.

    Raises:
        SetupError: a compiler is missing, or the wheel has no GPU plug-in.
    """
    for tool in ("gcc", "nm"):
        if shutil.which(tool) is None:
            raise SetupError(f"{tool} is not installed; it makes the libraries: apt-get install gcc binutils")
    names = _asked_for(_plug_ins())
    home = folder()
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as made:
        part = Path(made) / "front-end"
        for name in ("lib64", "bin"):
            (part / name).mkdir(parents=True)
        for library in LIBRARIES:
            _make(library, names, part / "lib64")
        for link, target in VERSIONED.items():
            (part / "lib64" / link).symlink_to(target)
        nvcc = part / "bin" / "nvcc"
        nvcc.write_text(NVCC)
        nvcc.chmod(0o755)
        (part / "ready").touch()
        shutil.rmtree(home, ignore_errors=True)
        part.rename(home)
    return home


def _plug_ins() -> list[Path]:
    spec = importlib.util.find_spec("mindspore")
    root = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else Path()
    plug_in = root / "lib" / "plugin"
    found = [*plug_in.glob("libmindspore_gpu.so.11*"), *plug_in.glob("gpu1*/*.so*"), *plug_in.glob("gpu/*.so*")]
    if not found:
        raise SetupError("this MindSpore has no GPU plug-in; install the wheel of mindspore from PyPI")
    return found


def _asked_for(plug_ins: list[Path]) -> list[str]:
    """Functions of CUDA that the plug-in calls: ``name`` or ``name@library``."""
    found = set()
    for path in plug_ins:
        listed = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=False)
        found |= {line.split()[-1] for line in listed.stdout.splitlines() if line.strip()}
    return sorted(name for name in found if re.match(r"cu|__cuda|nv", name))


def _make(library: str, names: list[str], target: Path) -> None:
    """One library: the functions that carry its name as their version; the driver has those without any."""
    options = [f"-Wl,-soname,{library}"]
    if library == "libcuda.so.1":
        own = [name for name in names if "@" not in name]
    else:
        own = sorted({name.partition("@")[0] for name in names if name.endswith(f"@{library}")})
        # Not beside the libraries: MindSpore takes the end of any name like theirs for a version.
        script = target.parent / f"{library}.map"
        script.write_text(f"{library} {{ global: *; }};\n")
        options.append(f"-Wl,--version-script={script}")
    source = "".join(
        f'const char *{name}(void){{return "no device";}}\n'
        if name.endswith(("ErrorString", "ErrorName"))
        else f"long {name}(void){{return {_NO_DEVICE};}}\n"
        for name in own
    )
    command = ["gcc", "-shared", "-fPIC", "-x", "c", *options, "-o", str(target / library), "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"gcc can't make {library}: {done.stderr.strip().splitlines()[-1]}")
