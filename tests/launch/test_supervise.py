"""Supervision with real processes that are no training, so that each test takes about a second."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.errors import LaunchError
from harness.launch import local, rank_environment
from harness.launch.code import Code
from harness.launch.supervise import Job, RankFailure, supervise

HERE = Code(Path.cwd())
REPORT = "open(f\"{sys.argv[1]}/rank-{os.environ.get('RANK_ID', 0)}.json\", 'w').write('{}')"


def local_job(folder, script, deadline=20.0):
    program = [sys.executable, "-c", f"import os, sys, time\n{script}", str(folder)]
    with local.command(1, folder, program) as command:
        return Job(command, 1, folder, rank_environment(1, HERE), deadline)


def several_job(folder, script, ranks=2, deadline=20.0):
    """Ranks started as msrun starts them: each in a session of its own, by a launcher that takes its time."""
    launcher = folder / "launcher.py"
    launcher.write_text(
        "import os, subprocess, sys\n"
        "ranks = [subprocess.Popen(sys.argv[2:], env={**os.environ, 'RANK_ID': str(i)}, start_new_session=True)"
        " for i in range(int(sys.argv[1]))]\n"
        "[rank.wait() for rank in ranks]\n"
    )
    with local.command(1, folder, [sys.executable, "-c", f"import os, sys, time\n{script}", str(folder)]) as command:
        return Job(
            [sys.executable, str(launcher), str(ranks), *command],
            ranks,
            folder,
            rank_environment(ranks, HERE),
            deadline,
        )


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in process.cmdline():
                found.append(process)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            pass
    return found


@pytest.fixture(autouse=True)
def leaves_no_process(tmp_path):
    yield
    assert processes_of(tmp_path) == []


def test_returns_when_every_rank_has_reported(tmp_path):
    supervise(several_job(tmp_path, REPORT))
    assert (tmp_path / "rank-1.json").exists()
    assert (tmp_path / "rank-1.exit").read_text() == "0"


def test_an_exit_status_and_the_log_tail_are_told_within_five_seconds(tmp_path):
    start = time.monotonic()
    with pytest.raises(RankFailure) as caught:
        supervise(local_job(tmp_path, "print('the reason'); sys.exit(3)"))
    assert time.monotonic() - start < 5
    assert "a rank failed: rank 0 exited with 3" in str(caught.value)
    assert "| the reason" in str(caught.value)


def test_one_rank_fails_while_another_sleeps_for_ever(tmp_path):
    start = time.monotonic()
    script = "if os.environ['RANK_ID'] == '1':\n    print('no more memory'); sys.exit(1)\ntime.sleep(3600)"
    with pytest.raises(RankFailure) as caught:
        supervise(several_job(tmp_path, script))
    assert time.monotonic() - start < 8
    message = str(caught.value)
    assert "rank 0 was still running; rank 1 exited with 1" in message
    assert "rank 1 wrote last:\n  | no more memory" in message


def test_a_killed_rank_is_told_by_its_signal(tmp_path):
    with pytest.raises(RankFailure, match="rank 0 was killed by SIGKILL"):
        supervise(local_job(tmp_path, "os.kill(os.getpid(), 9)"))


def test_an_exit_without_a_report_is_a_failure(tmp_path):
    with pytest.raises(RankFailure, match="a rank ended without a report: rank 0 exited with 0"):
        supervise(local_job(tmp_path, "pass"))


def test_a_hang_ends_at_the_deadline_and_shows_where(tmp_path):
    start = time.monotonic()
    script = (
        "import faulthandler, signal, pathlib\n"
        "faulthandler.register(signal.SIGTERM, chain=True)\n"
        "pathlib.Path(sys.argv[1], 'progress').write_text('7 2.5')\n"
        "def waits_for_ever(): time.sleep(3600)\n"
        "waits_for_ever()"
    )
    with pytest.raises(RankFailure) as caught:
        supervise(local_job(tmp_path, script, deadline=1.5))
    assert 1.5 <= time.monotonic() - start < 7
    assert "the deadline of 1.5 s passed: rank 0 was still running; last step seen: 7" in str(caught.value)
    assert "in waits_for_ever" in str(caught.value)


def test_a_rank_that_ignores_term_is_killed(tmp_path):
    script = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)"
    with pytest.raises(RankFailure, match="deadline"):
        supervise(local_job(tmp_path, script, deadline=1.0))


def test_a_launcher_that_fails_is_told(tmp_path):
    command = [sys.executable, "-c", "import sys; sys.exit('no such option')"]
    with pytest.raises(RankFailure, match=r"(?s)the launcher ended with 1.*no such option"):
        supervise(Job(command, 1, tmp_path, rank_environment(1, HERE), 20.0))


def test_ranks_whose_wrapper_is_killed_do_not_outlive_it(tmp_path):
    """Nobody can record the exit status then; the launcher's end tells."""
    script = "os.kill(os.getppid(), 9)\ntime.sleep(3600)"
    with pytest.raises(RankFailure, match="the launcher ended with -9"):
        supervise(local_job(tmp_path, script))


@pytest.mark.parametrize("job", ["local_job", "several_job"])
def test_ranks_end_when_the_session_is_killed(tmp_path, job):
    """A killed pytest leaves no training behind: every link of the chain dies with its parent."""
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import sys\nfrom pathlib import Path\nfrom tests.launch import test_supervise\n"
        "from harness.launch.supervise import supervise\n"
        f"supervise(test_supervise.{job}(Path(sys.argv[1]), 'time.sleep(3600)'))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    session = subprocess.Popen([sys.executable, str(driver), str(tmp_path)], env=environment)
    end = time.monotonic() + 15
    while len(processes_of(tmp_path)) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(processes_of(tmp_path)) >= 3
    session.kill()
    session.wait()
    while processes_of(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)


def test_progress_is_passed_on(tmp_path):
    seen = []
    script = f"import pathlib\npathlib.Path(sys.argv[1], 'progress').write_text('3 1.25')\ntime.sleep(0.5)\n{REPORT}"
    supervise(local_job(tmp_path, script), lambda step, loss: seen.append((step, loss)))
    assert seen[0] == (3, 1.25)


def test_a_launcher_that_is_not_there_is_told_without_its_folder(tmp_path):
    job = Job([str(tmp_path / "nowhere" / "msrun")], 1, tmp_path, rank_environment(1, HERE), 20.0)
    with pytest.raises(LaunchError, match=r"^msrun can't be started: No such file"):
        supervise(job)
