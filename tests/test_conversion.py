import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness import Scenario, corpus, stored
from harness.cli import app
from harness.conversion import convert, parse_size
from harness.errors import DataError, LaunchError, ResultsError
from harness.launch import train
from harness.launch.code import Code
from harness.locks import lock_folder
from harness.reading import Reader

ROOT = Path(__file__).parents[1]
PROSE = "A line of prose that is neither long nor short, and that says little.\n"


@given(st.integers(0, 10**6), st.sampled_from([("", 1), ("kB", 1000), ("MB", 10**6), ("GiB", 2**30), ("gb", 10**9)]))
def test_sizes_are_read_with_their_units(number, unit):
    name, factor = unit
    assert parse_size(f"{number}{name}") == parse_size(f" {number} {name} ") == number * factor


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2 XB", "1e9", "2GB2", "two"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(DataError, match="write it like 2GB or 500MiB"):
        parse_size(text)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with a text, and what was converted of it in many shards."""
    root = tmp_path_factory.mktemp("project")
    (root / "prose.txt").write_text("".join(f"{number} {PROSE}" for number in range(20_000)))
    convert(Scenario(data="text:prose.txt", sequence=64), Code(root), root / "converted", 3_600_000)
    return root


def test_every_shard_keeps_the_bound_and_nothing_else_is_left(project):
    manifest = stored.read(project / "converted", "mindrecord:converted")
    assert len(manifest.shards) > 10
    assert max(file.size for file in manifest.files) <= 3_600_000
    assert sorted(path.name for path in project.iterdir()) == ["converted", "prose.txt"]
    text = corpus.load(Scenario(data="text:prose.txt", sequence=64), project)
    assert manifest.rows == len(text.train)
    assert (stored.held_out(project / "converted", "") == text.held_out).all()


def test_an_existing_folder_is_left_alone(project):
    before = {path.name: path.stat().st_mtime_ns for path in (project / "converted").iterdir()}
    with pytest.raises(ResultsError, match="converted exists already; remove it, or name another folder"):
        convert(Scenario(data="text:prose.txt", sequence=32), Code(project), project / "converted", 10**9)
    assert before == {path.name: path.stat().st_mtime_ns for path in (project / "converted").iterdir()}


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        ("markov", 10**9, "data='markov' is no text; convert 'text', 'text:FILE' or 'records:FILE'"),
        ("mindrecord:converted", 10**9, "is no text"),
        ("text:none.txt", 10**9, "can't be read: No such file"),
        ("records:prose.txt", 10**9, "records are bad: .* over-long in line"),
        ("text:prose.txt", 10**6, "too small for a row; allow at least 4 MB"),
    ],
)
def test_what_can_not_be_converted_leaves_nothing(project, data, size, message):
    with pytest.raises(DataError, match=message):
        convert(Scenario(data=data, sequence=64), Code(project), project / "other", size)
    assert sorted(path.name for path in project.iterdir()) == ["converted", "prose.txt"]


def test_what_is_drawn_for_each_training_is_not_converted(project):
    for changes in ({"masking": 0.1}, {"shuffle_sentences": True}):
        with pytest.raises(DataError, match="are drawn for each training; convert the text as it is"):
            convert(Scenario(data="text:prose.txt", **changes), Code(project), project / "other", 10**9)


def test_a_place_that_is_no_folder_is_refused(project):
    with pytest.raises(ResultsError, match="can't be made"):
        convert(Scenario(data="text:prose.txt", sequence=64), Code(project), project / "prose.txt" / "x", 10**9)


def test_a_killed_conversion_leaves_no_folder_that_looks_whole(project, tmp_path):
    script = (
        "from pathlib import Path; from harness import Scenario; from harness.conversion import convert\n"
        "from harness.launch.code import Code\n"
        f"convert(Scenario(data='text:prose.txt', sequence=16), Code(Path({str(project)!r})), "
        f"Path({str(tmp_path / 'x')!r}), 4_000_000)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".x.*/rows/train-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    (writer,) = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert psutil.wait_procs([writer], timeout=10)[1] == []
    assert not (tmp_path / "x").exists()
    assert [path.name[:3] for path in tmp_path.iterdir()] == [".x."]


def test_the_command_says_how_fast_and_how_large(project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "lines.txt").write_text("a good line\n" * 40 + "\n" + "b" * 99 + "\n")
    arguments = ["convert", "records:lines.txt", "lines", "--sequence", "32", "--shard-size", "4MB"]
    try:
        done = CliRunner().invoke(app, [*arguments, "--bad-records", "skip"], catch_exceptions=False)
        assert done.exit_code == 0
        assert "2 of 42 records are bad: 1 empty in line 41; 1 over-long in line 42" in done.output
        assert "36 rows, 0.00 MB of text, in " in done.output
        assert "MB/s); the largest of 1 shards has " in done.output
    finally:
        (project / "lines.txt").unlink()


def test_data_that_vanishes_during_training_is_an_error_that_names_the_step(project, tmp_path):
    (tmp_path / "prose.txt").write_text(PROSE * 60)
    scenario = Scenario(model="nano", data="mindrecord:rows", batch=8, sequence=32, steps=2000, eval_sequences=0)
    convert(scenario.replace(data="text:prose.txt"), Code(tmp_path), tmp_path / "rows", 10**9)

    def vanish(step, loss):
        if step >= 20 and (tmp_path / "rows").exists():
            (tmp_path / "rows").rename(tmp_path / "gone")

    told = r"data='mindrecord:rows' could not be read after step \d+ of 2000: .*"
    with pytest.raises(LaunchError, match=told) as caught:
        train(scenario, "cpu", Code(tmp_path), tmp_path / "run", 120.0, progress=vanish)
    assert "see that it is still there and whole" in str(caught.value)
    assert (tmp_path / "gone").exists()


def test_a_shard_that_is_cut_is_refused_before_any_process_is_started(project, tmp_path):
    (tmp_path / "prose.txt").write_text(PROSE * 60)
    scenario = Scenario(data="text:prose.txt", batch=8, sequence=32)
    convert(scenario, Code(tmp_path), tmp_path / "rows", 10**9)
    os.truncate(tmp_path / "rows" / "train-0.mindrecord", 2_000_000)
    with pytest.raises(DataError, match=r"train-0.mindrecord has 2000000 bytes of \d+; convert the text again"):
        train(scenario.replace(data="mindrecord:rows"), "cpu", Code(tmp_path), tmp_path / "run", 60.0)
    assert not (tmp_path / "run").exists()


class TestReader:
    def test_reads_as_often_as_it_is_asked(self, project, tmp_path):
        scenario = Scenario(data="mindrecord:converted", batch=4, sequence=64)
        with Reader("cpu", Code(project), tmp_path / "log") as reader:
            for batches in (2, 30):
                found = reader.read(scenario, batches)
                assert found.rows == (batches - 1) * 4
                assert found.seconds > 0
            process = reader._process
        assert process.poll() is not None

    def test_refuses_what_it_can_not_read(self, project, tmp_path):
        text = Scenario(data="text:prose.txt", batch=4, sequence=64)
        with Reader("cpu", Code(project), tmp_path / "log") as reader:
            with pytest.raises(DataError, match="batches=1: the first starts the clock; read at least two"):
                reader.read(text, 1)
            with pytest.raises(DataError, match="has no lines for TextFileDataset; use records:FILE"):
                reader.read(text, 5, "TextFileDataset")
            with pytest.raises(DataError, match="No such file"):
                reader.read(text.replace(data="text:none.txt"), 5)

    def test_an_error_inside_is_an_error_here_and_the_next_reading_works(self, project, tmp_path):
        scenario = Scenario(data="mindrecord:converted", batch=100_000, sequence=64)
        with Reader("cpu", Code(project), tmp_path / "log") as reader:
            with pytest.raises(DataError, match=r"holds 21[0-9]{3} rows; a rank's batch takes 100000"):
                reader.read(scenario, 2)
            assert reader.read(scenario.replace(batch=4), 2).rows == 4

    def test_leaves_the_device_to_others_between_readings(self, project, tmp_path):
        scenario = Scenario(data="text:prose.txt", batch=4, sequence=64)
        with Reader("cpu", Code(project), tmp_path / "log") as reader:
            reader.read(scenario, 2)
            with FileLock(lock_folder() / "device-cpu.lock", timeout=300):
                pass
            assert reader.read(scenario, 2).rows == 4

    def test_a_process_that_died_is_told_and_not_waited_for(self, project, tmp_path):
        scenario = Scenario(data="text:prose.txt", batch=4, sequence=64)
        with Reader("cpu", Code(project), tmp_path / "log") as reader:
            reader.read(scenario, 2)
            os.killpg(reader._process.pid, signal.SIGKILL)
            with pytest.raises(LaunchError, match="the reading process ended; its log: log"):
                reader.read(scenario, 2)
