"""Runs each ``inside/check_*.py`` in a process of its own: they import mindspore, which this one never does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKS = sorted(path.name for path in (Path(__file__).parent / "inside").glob("check_*.py"))


@pytest.mark.parametrize("name", CHECKS)
def test_checks_inside_a_mindspore_process(name):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:harness"]
    command += ["-o", "python_files=check_*.py", "-o", "pythonpath=.", f"tests/trainer/inside/{name}"]
    environment = {**os.environ, "GLOG_v": "3", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_this_process_never_imports_mindspore():
    import harness.cli
    import harness.plugin  # noqa: F401

    assert not [name for name in sys.modules if name == "mindspore" or name.startswith("mindspore.")]
