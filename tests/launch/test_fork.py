"""Ranks forked from real servers of a module that is no training, so that each test takes about a second."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness import Scenario
from harness.errors import LaunchError
from harness.launch import fork, servers, train
from harness.launch.code import Code
from harness.launch.placement import Placement
from harness.launch.servers import available, warm
from harness.launch.supervise import Job, RankFailure, supervise
from tests.processes import ends, running_in

ROOT = Path(__file__).parents[2]

HEAVY = """
import os
with open(os.environ["LOADED"], "a") as file:
    file.write(f"{os.getpid()}\\n")
VERSION = 1
"""

RANK = """
import json, os, pathlib, sys, time
import heavy

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    (folder / "seen.json").write_text(json.dumps({
        "name": __name__, "arguments": sys.argv[1:], "folder": os.getcwd(), "path": sys.path[0],
        "version": heavy.VERSION, "session": os.getsid(0), "process": os.getpid(), "parent": os.getppid(),
        "input": sys.stdin.read(), "term": str(__import__("signal").getsignal(15)), "environment": dict(os.environ),
    }))
    script = folder / "script"
    if script.exists():
        exec(script.read_text())
    (folder / f"rank-{os.environ.get('RANK_ID', 0)}.json").write_text("{}")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A package that can be run, and what its dependency leaves when it is imported."""
    (tmp_path / "lib" / "light").mkdir(parents=True)
    write(tmp_path / "lib" / "light" / "__init__.py", "")
    write(tmp_path / "lib" / "light" / "__main__.py", RANK)
    write(tmp_path / "lib" / "heavy.py", HEAVY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.setenv("LOADED", str(tmp_path / "loaded"))
    yield tmp_path
    servers.close()
    assert running_in(tmp_path) == []


def write(path, text):
    """Writes a source file as if it had been there for a while."""
    path.write_text(text)
    os.utime(path, (time.time() - 60, time.time() - 60))


def run(project, name="run", script="", deadline=20.0, **environment):
    """One supervised rank; what it saw."""
    folder = project / name
    folder.mkdir()
    (folder / "script").write_text(script)
    variables = {**os.environ, **environment}
    with fork.command(1, folder, "light", [str(folder), "more"], Code(project), variables) as command:
        supervise(Job(command, 1, folder, variables, deadline))
    return json.loads((folder / "seen.json").read_text())


def test_a_rank_is_what_python_m_would_have_started(project):
    seen = run(project, OWN="1")
    folder = str(project / "run")
    assert seen["name"] == "__main__"
    assert seen["arguments"] == [folder, "more"]
    assert (seen["folder"], seen["path"]) == (folder, folder)
    assert seen["session"] == seen["parent"] != seen["process"]
    assert seen["input"] == ""
    assert seen["term"] == str(signal.SIG_DFL)
    assert {name: seen["environment"][name] for name in ("OWN", "HARNESS_SESSION")} == {
        "OWN": "1",
        "HARNESS_SESSION": str(os.getpid()),
    }
    assert (project / "run" / "rank-0.exit").read_text() == "0"


def test_what_ranks_need_is_imported_once(project):
    first, second = run(project, "first"), run(project, "second", HARNESS_REQUESTED="another")
    assert first["process"] != second["process"]
    assert len((project / "loaded").read_text().split()) == 1


def test_no_rank_runs_code_that_changed(project):
    assert run(project, "before")["version"] == 1
    (project / "lib" / "heavy.py").write_text(HEAVY.replace("VERSION = 1", "VERSION = 2"))
    assert run(project, "after")["version"] == 2
    write(project / "lib" / "heavy.py", HEAVY.replace("VERSION = 1", "VERSION = 3"))
    assert run(project, "last")["version"] == 3


def test_a_file_that_changes_while_it_is_read_is_not_trusted(project):
    (project / "lib" / "heavy.py").write_text(HEAVY + "import pathlib, time\npathlib.Path(__file__).touch()\n")
    with pytest.raises(LaunchError, match=r"heavy.py changed since it was imported"):
        run(project)


def test_another_environment_is_another_server(project):
    environment = dict(os.environ)
    one = warm(Path(sys.executable), "light", environment)
    assert warm(Path(sys.executable), "light", {**environment, "RANK_ID": "3", "PYTEST_CURRENT_TEST": "x"}) is one
    assert warm(Path(sys.executable), "light", {**environment, "OMP_NUM_THREADS": "77"}) is not one


def test_few_servers_are_kept(project, monkeypatch):
    monkeypatch.setattr(servers, "MOST", 1)
    one = warm(Path(sys.executable), "light", {**os.environ, "OMP_NUM_THREADS": "1"})
    warm(Path(sys.executable), "light", {**os.environ, "OMP_NUM_THREADS": "2"})
    assert ends(one.process.pid)


def test_threads_that_start_on_import_are_named(project):
    write(
        project / "lib" / "heavy.py",
        HEAVY + "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), name='ticker').start()\n",
    )
    with pytest.raises(LaunchError, match=r"importing starts threads \(ticker\)"):
        run(project)


def test_what_cannot_be_imported_is_told(project):
    write(project / "lib" / "heavy.py", "raise ImportError('no such library')")
    with pytest.raises(LaunchError, match="the fork server ended with 1"):
        run(project)


def test_a_rank_that_crashes_harms_no_other(project):
    with pytest.raises(RankFailure, match="rank 0 was killed by SIGSEGV"):
        run(project, "crashing", "import ctypes; ctypes.string_at(0)")
    with pytest.raises(RankFailure, match="rank 0 exited with 7"):
        run(project, "leaving", "os._exit(7)")
    run(project, "leaking", "leaked = bytearray(300 * 2**20)")
    run(project, "well")
    assert len((project / "loaded").read_text().split()) == 1


def test_a_hanging_rank_ends_at_the_deadline_with_what_it_started(project):
    script = "import subprocess\nsubprocess.Popen(['sleep', '3600'], start_new_session=True)\ntime.sleep(3600)"
    with pytest.raises(RankFailure, match="the deadline of 1 s passed: rank 0 was still running"):
        run(project, script=script, deadline=1.0)
    assert running_in(project / "run") == []


@pytest.mark.parametrize("script", ["os.kill(os.getppid(), 9)\ntime.sleep(3600)", "time.sleep(3600)"])
def test_a_rank_ends_with_who_keeps_it(project, script):
    """First its wrapper is killed, then its server."""
    folder = project / "run"
    folder.mkdir()
    (folder / "script").write_text(script)
    with fork.command(1, folder, "light", [str(folder)], Code(project), os.environ) as command:

        def kill(*_):
            command.server.process.kill()

        if script == "time.sleep(3600)":
            (folder / "progress").write_text("1 1.0")
        with pytest.raises(RankFailure, match=r"rank 0 vanished|the fork server was killed by SIGKILL"):
            supervise(Job(command, 1, folder, os.environ, 20.0), kill)
    assert running_in(folder) == []
    run(project, "afterwards")


def test_a_server_that_was_stopped_is_replaced(project, monkeypatch):
    monkeypatch.setattr(servers, "ANSWER_SECONDS", 0.5)
    first = available(Path(sys.executable), "light", os.environ)
    os.kill(first.process.pid, signal.SIGSTOP)
    assert available(Path(sys.executable), "light", os.environ) is not first
    assert ends(first.process.pid)


DRIVER = """
import sys
from pathlib import Path
from tests.launch.test_fork import run
run(Path(sys.argv[1]), script="time.sleep(3600)")
"""


def test_a_session_that_is_killed_leaves_no_server_and_no_rank(project):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{project / 'lib'}"}
    session = subprocess.Popen([sys.executable, "-c", DRIVER, str(project)], cwd=ROOT, env=environment)
    seen, end = project / "run" / "seen.json", time.monotonic() + 20
    while not seen.exists() and time.monotonic() < end:
        time.sleep(0.05)
    started = psutil.Process(session.pid).children(recursive=True)
    assert len(started) >= 3
    session.kill()
    session.wait()
    assert all(ends(process.pid) for process in started)


def test_two_sessions_have_servers_of_their_own(project):
    other = subprocess.Popen(
        [sys.executable, "-c", DRIVER.replace("time.sleep(3600)", ""), str(project)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{project / 'lib'}"},
    )
    run(project, "ours")
    assert other.wait(30) == 0
    assert len((project / "loaded").read_text().split()) == 2


def test_ranks_are_forked_where_that_is_known_to_be_safe():
    here = Path(sys.executable)
    assert Placement().forks("cpu", here)
    assert not Placement(start="fresh").forks("cpu", here)
    assert not Placement().forks("ascend", here)
    assert not Placement().forks("gpu", here)
    assert not Placement().forks("cpu", Path("/another/python"))
    assert not Placement(launcher="slurm").forks("cpu", here)
    assert not Placement(binding="numa").forks("cpu", here)


def test_training_falls_back_to_fresh_processes_and_says_so(tmp_path, monkeypatch):
    """Something that Python itself loads starts a thread: a forked process would lack it."""
    ticking = "import threading\nthreading.Thread(target=threading.Event().wait, name='ticker', daemon=True).start()\n"
    write(tmp_path / "sitecustomize.py", ticking)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    scenario = Scenario(model="nano", steps=2, batch=2, sequence=8, eval_sequences=0)
    (tmp_path / "run").mkdir()
    done = train(scenario, "cpu", Code(ROOT), tmp_path / "run", 60.0)
    assert done.warnings == [
        "ranks were started as fresh processes: importing starts threads (ticker), which no forked process has"
    ]
    assert len(done.curve("loss")) == 2
    servers.close()
