"""Marks, skips and devices."""

import pytest

from tests.plugin.sessions import MARKED, suite
from tests.plugin.sessions import run_here as run


class TestHardware:
    def test_one_instance_a_hardware_each_with_only_its_mark(self, project):
        suite(project, MARKED)
        listed = {name: run(project, "-m", name, "--collect-only", "-q").outlines for name in ("cpu", "gpu", "ascend")}
        for name, lines in listed.items():
            ids = [line for line in lines if "::" in line]
            assert ids
            assert all(line.endswith(f"[{name}]") for line in ids)

    @pytest.mark.parametrize("name", ["ascend", "gpu"])
    def test_missing_hardware_skips_with_a_reason_or_fails(self, project, name):
        suite(project, MARKED)
        skipped = run(project, "-m", name, "-rs")
        skipped.assert_outcomes(skipped=2 if name == "ascend" else 1, deselected=3 if name == "ascend" else 4)
        assert skipped.ret == 0
        skipped.stdout.fnmatch_lines([f"SKIPPED*no {name} on this machine: *"])
        required = run(project, "-m", name, "--require-hardware")
        assert required.ret == 1
        assert required.parseoutcomes()["errors"] == (2 if name == "ascend" else 1)
        required.stdout.fnmatch_lines([f"*no {name} on this machine*(--require-hardware)*"])

    def test_too_few_devices_skip_with_the_reason(self, project):
        suite(project, MARKED)
        skipped = run(project, "-m", "cpu", "-rs")
        skipped.assert_outcomes(passed=1, skipped=1, deselected=3)
        skipped.stdout.fnmatch_lines(["SKIPPED*needs 1000 cpu devices, found *"])

    def test_an_unknown_name_is_a_usage_error(self, project):
        suite(project, "from harness import hardware\n\n@hardware('ascent')\ndef test_x(trainer): pass\n")
        found = run(project)
        assert found.ret == 2
        found.stdout.fnmatch_lines(["test_suite.py:3: error: hardware 'ascent' is unknown; choose from *'ascend'?"])

    def test_a_test_without_hardware_is_told(self, project):
        suite(project, "def test_x(trainer): pass\n")
        found = run(project)
        found.stdout.fnmatch_lines(["*test_x names no hardware; decorate it with @hardware*"])
        assert found.ret == 1
