import pytest

from harness import devices
from harness.errors import HardwareError


def test_unknown_hardware_is_refused():
    with pytest.raises(
        HardwareError, match=r"hardware 'ascent' is unknown; choose from cpu, gpu, ascend; did you mean"
    ):
        devices.find("ascent")


def test_cpu_offers_ranks():
    assert devices.find("cpu").count >= 4


def test_gpus_are_counted_by_nvidia_smi(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: X (UUID: 1)'\necho 'GPU 1: X (UUID: 2)'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert devices.find("gpu").count == 2
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert devices.find("gpu").count == 0
    assert "nvidia-smi failed" in devices.find("gpu").reason


def test_others_on_a_gpu_and_its_driver_are_told_by_nvidia_smi(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\ncase "$1" in *driver*) echo 550.54; echo 550.54;; *) echo 4711; echo 4712;; esac\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert devices.driver("gpu") == "550.54"
    assert devices.processes("gpu") == 2
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert (devices.driver("gpu"), devices.processes("gpu")) == (None, 0)


def test_others_on_an_ascend_and_its_driver(tmp_path, monkeypatch):
    table = """
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 4711          | python3                  | 31017                   |
| 1       0                 | 4712          | python3                  | 31018                   |
| No running processes found in NPU 2                                                            |
+===========================+===============+====================================================+
"""
    assert devices.npu_processes(table) == [4711, 4712]
    assert devices.npu_processes(table, [1, 2]) == [4712]
    assert devices.npu_processes("") == []
    version = tmp_path / "version.info"
    monkeypatch.setattr(devices, "ASCEND_DRIVER", version)
    assert devices.driver("ascend") is None
    version.write_text("package_version=24.1\nVersion=24.1.rc2\n")
    assert devices.driver("ascend") == "24.1.rc2"


def test_a_cpu_has_no_driver_and_measures_its_load_elsewhere():
    assert (devices.driver("cpu"), devices.processes("cpu")) == (None, 0)
