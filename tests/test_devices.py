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
