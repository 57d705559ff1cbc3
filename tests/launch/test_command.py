"""Commands of others, as real processes."""

import json
import sys

import pytest

from harness import Scenario
from harness.errors import LaunchError, ScenarioError
from harness.launch.code import Code
from harness.launch.command import run_command
from tests.processes import ends

LOOP = """
import json, os, sys
for step in range(1, 6):
    print(json.dumps({"step": step, "loss": 5.0 - step, "step_time": 0.5}), flush=True)
"""


def run(tmp_path, text=LOOP, deadline=60.0, arguments=(), **fields):
    (tmp_path / "train.py").write_text(text)
    command = Scenario.command(["python", "train.py", *arguments], **fields)
    return run_command(command, "cpu", Code(tmp_path), tmp_path / "runs" / "r", deadline)


def test_what_it_prints_becomes_curves_and_speed(tmp_path):
    found = run(tmp_path, tokens_per_step=100)
    assert found.curve("loss") == (4.0, 3.0, 2.0, 1.0, 0.0)
    assert found.steps["loss"] == [1, 2, 3, 4, 5]
    assert found["throughput"] == 200.0
    assert found.environment.mindspore.startswith("2.")
    assert str(tmp_path) not in json.dumps(found.scenario)


def test_it_works_in_the_project_and_leaves_files_in_its_own_folder(tmp_path):
    text = LOOP + "open(sys.argv[1], 'w').write('{\"step\": 7, \"loss\": 1.5}\\n')\nassert os.path.exists('train.py')\n"
    found = run(tmp_path, text, arguments=["{folder}/curves.jsonl"], output="*.jsonl")
    assert (found.curves["loss"], found.steps["loss"]) == ([1.5], [7])


def test_a_failure_shows_its_last_lines(tmp_path):
    with pytest.raises(LaunchError, match=r"(?s)rank 0 exited with 3.*the reason"):
        run(tmp_path, "print('the reason', flush=True); raise SystemExit(3)")


def test_the_deadline_ends_all_that_it_started(tmp_path):
    text = "import subprocess, sys, time\n"
    text += "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
    text += "open('child', 'w').write(str(child.pid)); time.sleep(60)\n"
    with pytest.raises(LaunchError, match="the deadline of 3 s passed"):
        run(tmp_path, text, deadline=3.0)
    assert ends(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize(
    ("text", "output", "message"),
    [
        ("print('done')", "", "ended well and left no curve: rank-0.log: none of 1 lines is a step"),
        (LOOP, "*.csv", r"nothing is like output='\*.csv' in the run's folder, which holds .*rank-0.log"),
        (LOOP, "*.*", r"\d files are like output='\*.\*'"),
    ],
)
def test_a_command_without_curves_says_what_there_is(tmp_path, text, output, message):
    with pytest.raises(LaunchError, match=message):
        run(tmp_path, text, output=output)


def test_a_program_that_is_not_there_is_refused_before_it_is_started(tmp_path):
    command = Scenario.command(["no-such-program"])
    with pytest.raises(ScenarioError, match="command 'no-such-program' is not found; name a program on PATH"):
        run_command(command, "cpu", Code(tmp_path), tmp_path / "r", 5.0)


LEAVES = """
import json, subprocess
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
open("child", "w").write(str(child.pid))
print(json.dumps({"step": 1, "loss": 1.0}))
"""


def test_what_a_command_leaves_running_is_ended_and_told(tmp_path):
    with pytest.raises(LaunchError, match=r"python train.py ended and left 1 processes running, .*msrun: --join=True"):
        run(tmp_path, LEAVES)
    assert ends(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("name", ["run.sh", "./run.sh", "sub/none.sh"])
def test_a_file_of_the_project_must_be_named_and_executable(tmp_path, name):
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    with pytest.raises(ScenarioError, match=f"command '{name}' is"):
        run_command(Scenario.command([name]), "cpu", Code(tmp_path), tmp_path / "r", 5.0)


def test_a_script_of_the_project_is_run(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text('#!/bin/sh\necho \'{"step": 3, "loss": 1.5}\'\n')
    script.chmod(0o755)
    found = run_command(Scenario.command(["./run.sh"]), "cpu", Code(tmp_path), tmp_path / "r", 30.0)
    assert found.steps["loss"] == [3]


def test_another_interpreter_runs_its_own_python(tmp_path):
    other = tmp_path / "other" / "bin"
    other.mkdir(parents=True)
    (other / "python3").symlink_to(sys.executable)
    text = LOOP + "open(sys.argv[1], 'w').write(sys.executable)\n"
    (tmp_path / "train.py").write_text(text)
    command = Scenario.command(["python", "train.py", "{folder}/which"])
    run_command(command, "cpu", Code(tmp_path, other / "python3"), tmp_path / "r", 60.0)
    assert (tmp_path / "r" / "which").read_text() == str(other / "python3")
