import os

import pytest

from harness.launch import child
from harness.launch.code import Code
from tests.processes import ends

MODULE = "import os, subprocess, sys, time\n"


def run(tmp_path, text, deadline=None):
    (tmp_path / "ours.py").write_text(MODULE + text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return child.run("ours", tmp_path, Code(tmp_path), environment, deadline)


def test_work_that_is_done_has_no_reason_and_keeps_what_it_printed(tmp_path):
    assert run(tmp_path, "print(sys.argv[1] == os.getcwd())") == ""
    assert (tmp_path / child.OUTPUT).read_text() == "True\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sys.exit('error: the user can mend it')", "the user can mend it"),
        ("print('error: first'); print('noise'); sys.exit(1)", "first"),
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("sys.exit(3)", "exit status 3"),
        ("os.kill(os.getpid(), 9)", "exit status -9"),
    ],
)
def test_a_failure_says_why(tmp_path, text, reason):
    assert run(tmp_path, text) == reason


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path):
    text = "print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    assert run(tmp_path, text, deadline=2.0) == "it took more than 2 s"
    assert ends(int((tmp_path / child.OUTPUT).read_text()))
