import os
import select
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

import pytest

from harness import locks
from harness.errors import LaunchError
from harness.launch.ports import reserved_port
from harness.locks import device_lock, lock_folder
from tests.checkpoints.making import file_system

HOLD = """
import sys, time
from harness.locks import device_lock
with device_lock("cpu", shared=sys.argv[1] == "shared"):
    print("in", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    tempfile.tempdir = None


class Holder:
    """A process that holds the lock until it is told to end."""

    def __init__(self, kind):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def is_in(self, seconds):
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def end(self):
        self.process.communicate("", timeout=10)

    def kill(self):
        self.process.kill()
        self.process.communicate()


def test_those_who_share_are_in_at_once_and_who_wants_it_alone_waits():
    first, second = Holder("shared"), Holder("shared")
    assert first.is_in(10)
    assert second.is_in(10)
    alone = Holder("alone")
    assert not alone.is_in(1)
    first.end()
    assert not alone.is_in(0.5)
    second.end()
    assert alone.is_in(10)
    late = Holder("shared")
    assert not late.is_in(1)
    alone.end()
    assert late.is_in(10)
    late.end()


def test_who_is_killed_lets_go():
    alone = Holder("alone")
    assert alone.is_in(10)
    alone.kill()
    start = time.monotonic()
    with device_lock("cpu"):
        assert time.monotonic() - start < 10


def test_each_kind_of_device_has_its_own():
    with device_lock("cpu"), device_lock("ascend"):
        pass


def test_a_lock_folder_that_is_another_users_is_named(monkeypatch):
    folder = lock_folder()
    owner = os.getuid()
    monkeypatch.setattr(locks.os, "getuid", lambda: owner + 1)
    folder.rename(folder.with_name(f"mindspore-harness-{owner + 1}"))
    with pytest.raises(
        LaunchError, match=rf"mindspore-harness-{owner + 1} belongs to user {owner}, not to you; set TMP"
    ):
        lock_folder()


def test_a_lock_folder_that_others_may_write_is_named():
    lock_folder().chmod(0o777)
    with pytest.raises(LaunchError, match=r"may be written by others \(mode 777\); chmod 700 it"):
        lock_folder()


def test_a_lock_folder_that_is_none_is_named(own_folder):
    (own_folder / f"mindspore-harness-{os.getuid()}").write_text("")
    with pytest.raises(LaunchError, match="can't be made: File exists; set TMPDIR"):
        lock_folder()


def test_a_folder_behind_a_link_is_not_taken(own_folder):
    (own_folder / "elsewhere").mkdir()
    (own_folder / f"mindspore-harness-{os.getuid()}").symlink_to("elsewhere")
    with pytest.raises(LaunchError, match="is no folder; remove it"):
        lock_folder()


def test_a_lock_that_cannot_be_written_is_named():
    (lock_folder() / "device-cpu.db").mkdir()
    with (
        pytest.raises(LaunchError, match=r"the lock .*device-cpu.db can't be written: .*; free its disk or set TMPDIR"),
        device_lock("cpu"),
    ):
        pass


def test_a_full_temporary_folder_locks_all_the_same(own_folder):
    """Locks are files without content."""
    small = own_folder / "small"
    with file_system(small, "size=64k"):
        tempfile.tempdir = str(small)
        lock_folder()
        with suppress(OSError), (small / "filling").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with device_lock("cpu"), reserved_port() as port:
            assert port
