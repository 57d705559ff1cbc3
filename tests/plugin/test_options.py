"""Options and configuration that can't be applied; collecting."""

import subprocess
import sys
import time

import pytest

from tests.plugin.sessions import ROOT, gated, run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plant", "slow"], "*fault 'slow' is unknown*"),
        (["--plant", "nan=x"], "*'x' is no positive number*"),
        (["--bind", "socket"], "*binding 'socket' is unknown; choose from none, core, numa*"),
    ],
)
def test_a_bad_option_is_a_usage_error(project, arguments, message):
    gated(project)
    found = run(project, *arguments)
    assert found.ret == 4
    found.stderr.fnmatch_lines([message])


def test_a_bad_policy_in_the_configuration_is_a_usage_error(project):
    gated(project)
    (project.path / "pyproject.toml").write_text("[tool.harness.policy.losss]\nrelative = 1\n")
    found = run(project)
    assert found.ret == 4
    found.stderr.fnmatch_lines(["*[[]tool.harness.policy[]] in pyproject.toml: metric 'losss' is unknown*"])


def test_collecting_the_suites_imports_no_mindspore():
    script = (
        "import sys, pytest\n"
        "code = pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider', 'suites'])\n"
        "assert not [n for n in sys.modules if n.split('.')[0] == 'mindspore']\n"
        "sys.exit(code)\n"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[cpu]" in done.stdout
    assert time.perf_counter() - start < 30
