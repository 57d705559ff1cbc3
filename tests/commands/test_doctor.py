import shutil
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness import cli
from harness.commands import doctor


@pytest.fixture
def versions(monkeypatch):
    """Installed versions as a test wishes them; the rest as they are."""
    wished = {}
    real = metadata.version

    def version(package):
        if package not in wished:
            return real(package)
        if wished[package] is None:
            raise metadata.PackageNotFoundError(package)
        return wished[package]

    monkeypatch.setattr(doctor.metadata, "version", version)
    return wished


def test_this_machine_is_well():
    done = CliRunner().invoke(cli.app, ["doctor"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    for subject in (
        "Python",
        "MindSpore",
        "numpy",
        "decorator",
        "back end cpu",
        "cores",
        "NUMA",
        "ports",
        "results folder",
    ):
        assert subject in done.output
    assert "back end ascend  does not load: Unsupported device target Ascend" in done.output


@pytest.mark.parametrize(
    ("package", "version", "subject", "fix"),
    [
        ("numpy", "2.1.0", "numpy", "pip install 'numpy<2'"),
        ("decorator", None, "decorator", "pip install decorator"),
        ("mindspore", None, "MindSpore", "pip install 'mindspore>=2.10,<2.11'"),
        ("mindspore", "2.4.0", "MindSpore", "written for 2.10"),
    ],
)
def test_a_wrong_package_is_told_with_its_fix(versions, monkeypatch, package, version, subject, fix):
    versions[package] = version
    monkeypatch.setattr(doctor, "_probe", lambda hardware: (True, ""))
    found = {finding.subject: finding for finding in doctor.examine(Path.cwd())}
    assert fix in found[subject].fix
    assert CliRunner().invoke(cli.app, ["doctor"]).exit_code == 1


def test_a_folder_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_probe", lambda hardware: (True, ""))
    found = {finding.subject: finding for finding in doctor.examine(tmp_path / "none")}
    assert found["results folder"].found == "can't be written: No such file or directory"
    assert "--results" in found["results folder"].fix


def test_a_device_that_mindspore_cannot_use_is_told(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: X (UUID: 1)'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(doctor, "_probe", lambda hardware: (hardware == "cpu", "libcublas.so.11 is missing"))
    found = {finding.subject: finding for finding in doctor.examine(Path.cwd())}
    assert "1 devices are here but MindSpore can't use them; install CUDA 11's libraries" in found["back end gpu"].fix
    assert not found["back end ascend"].fix


def test_disks_are_measured():
    assert shutil.disk_usage(Path.cwd()).total > 0
    findings = {finding.subject: finding for finding in doctor._folders(Path.cwd())}
    assert findings["lock folder"].found.startswith("writable")
