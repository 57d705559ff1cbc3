import os

import pytest

from harness import files
from harness.errors import ResultsError
from harness.files import tail, write_atomically


def test_replaces_the_old_file(tmp_path):
    path = tmp_path / "a" / "file.json"
    write_atomically(path, "old")
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["file.json"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "file.json"
    write_atomically(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, failing, full)
    with pytest.raises(ResultsError, match=r"/file.json can't be written: No space left on device; free the disk"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.json"]


def test_tail_reads_the_end_and_survives_what_is_no_text(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"\xff\n".join(str(i).encode() for i in range(100_000)))
    assert tail(log, 2) == ["99998�", "99999"]
    assert tail(tmp_path / "none", 3) == []
