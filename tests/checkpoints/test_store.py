"""Whatever is cut, flipped, or interrupted: the newest whole checkpoint is found, and never a mix."""

import json
import os
import resource
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Checkpoints
from harness.checkpoints.manifest import MANIFEST
from harness.checkpoints.store import Store, copy
from harness.errors import CheckpointError, ResultsError
from tests.checkpoints.making import KEEP_ALL, file_system, files, save


@pytest.fixture
def store(tmp_path):
    found = Store(tmp_path / "checkpoints")
    with found.owned():
        yield found


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two ranks, steps 10 and 20."""
    found = Store(tmp_path_factory.mktemp("two") / "checkpoints")
    with found.owned():
        save(found, 10, ranks=2)
        save(found, 20, ranks=2)
    return found


def copied(two, place: Path) -> Store:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(two.folder, place)
    return Store(place)


def test_the_newest_is_found_and_said_to_be_whole(two):
    manifest, problems = two.newest()
    assert (manifest.step, manifest.samples, problems) == (20, 320, [])
    assert [part.rank for part in manifest.ranks] == [0, 1]


def test_the_number_says_which_is_newest_and_no_clock(two, tmp_path):
    """Touched last, or by a clock set back: 10 is not newer than 20, and 9 not newer than 10."""
    store = copied(two, tmp_path / "c")
    os.utime(store.path(20), (0, 0))
    with store.owned():
        save(store, 9)
    assert store.steps() == [9, 10, 20]
    assert store.newest()[0].step == 20


def test_one_ranks_file_of_three_bytes_sends_both_ranks_back(two, tmp_path):
    """Whatever any index says."""
    store = copied(two, tmp_path / "c")
    with (store.path(20) / "rank-1.safetensors").open("r+b") as file:
        file.truncate(3)
    manifest, problems = store.newest()
    assert manifest.step == 10
    (problem,) = problems
    assert problem.startswith("step-00000020: rank-1.safetensors has 3 bytes of ")


@given(st.data())
def test_a_file_cut_to_any_length_is_never_taken_for_whole(two, tmp_path_factory, data):
    store = copied(two, tmp_path_factory.getbasetemp() / "cut")
    path = data.draw(st.sampled_from(files(store.path(20))))
    size = path.stat().st_size
    cut = data.draw(st.integers(0, size - 1))
    with path.open("r+b") as file:
        file.truncate(cut)
    step = store.newest()[0].step
    # Of the manifest's text nothing but its last line's end may be missing.
    assert step == (20 if path.name == MANIFEST and cut == size - 1 else 10)


@given(st.data())
def test_a_flipped_bit_is_never_taken_for_whole(two, tmp_path_factory, data):
    """Nor in the manifest: another number of samples would be another place in the data."""
    store = copied(two, tmp_path_factory.getbasetemp() / "flip")
    path = data.draw(st.sampled_from(files(store.path(20))))
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    manifest, problems = store.newest()
    assert manifest.step == 10
    assert path.name != MANIFEST or MANIFEST in problems[0]


def test_a_changed_number_in_the_manifest_is_found(two, tmp_path):
    store = copied(two, tmp_path / "c")
    path = store.path(20) / MANIFEST
    path.write_text(path.read_text().replace('"samples": 320', '"samples": 720'))
    with pytest.raises(CheckpointError, match=r"manifest\.json is not what was written \(seal [0-9a-f]{16}\)"):
        store.read(20)


@pytest.mark.parametrize("name", ["rank-0.safetensors", "rank-1.json", MANIFEST])
def test_a_missing_file_is_named(two, tmp_path, name):
    store = copied(two, tmp_path / "c")
    (store.path(20) / name).unlink()
    manifest, problems = store.newest()
    assert manifest.step == 10
    assert f"step-00000020: {name}: No such file or directory" in problems[0]


def test_a_checkpoint_under_another_steps_name_is_none(two, tmp_path):
    store = copied(two, tmp_path / "c")
    store.path(20).rename(store.path(30))
    manifest, problems = store.newest()
    assert manifest.step == 10
    assert problems == ["step-00000030: its manifest is of step 20"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "its schema_version is 2, this harness reads 1; use the one that wrote it"),
        ({"step": "x"}, r"manifest.json is damaged \(step: "),
        ({"extra": 1}, r"manifest.json is damaged \(extra: "),
    ],
)
def test_a_manifest_that_cannot_be_read_is_told(two, tmp_path, change, message):
    store = copied(two, tmp_path / "c")
    path = store.path(20) / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=message):
        store.read(20)
    assert store.newest()[0].step == 10


def test_a_file_name_cannot_leave_the_folder(two, tmp_path):
    store = copied(two, tmp_path / "c")
    path = store.path(20) / MANIFEST
    path.write_text(path.read_text().replace("rank-1.safetensors", "../../secret"))
    with pytest.raises(CheckpointError, match="is damaged"):
        store.read(20)


def test_the_newest_stay_and_so_do_the_best_and_the_alarmed(store):
    policy = Checkpoints(every=1, kept=2, best="perplexity")
    for step, nll in enumerate([30.0, 20.0, 25.0, 26.0, 27.0, 28.0], start=1):
        save(store, step, policy=policy, nll=nll, reason="alarm" if step == 3 else "cadence")
    assert store.steps() == [2, 3, 5, 6]


def test_the_last_whole_one_stays_while_the_newest_is_not_whole(store):
    save(store, 1, policy=Checkpoints(every=1, kept=1))
    save(store, 2)
    (store.path(2) / "rank-0.safetensors").write_bytes(b"")
    store.prune(Checkpoints(every=1, kept=1))
    assert store.steps() == [1, 2]
    assert store.newest()[0].step == 1


def test_what_is_damaged_is_none_of_those_that_are_kept(store):
    """Gone on from 1 because 9 was damaged: 2 and 3 are kept, and 9 goes when 10 is there."""
    policy = Checkpoints(every=1, kept=2)
    save(store, 1)
    save(store, 9)
    (store.path(9) / MANIFEST).write_text("")
    for step in (2, 3):
        save(store, step, policy=policy)
    assert store.steps() == [2, 3, 9]
    save(store, 10, policy=policy)
    assert store.steps() == [3, 10]


def test_what_is_not_finite_is_evidence_and_nothing_to_go_on_from(store):
    """However many come after it, the last good one stays."""
    policy = Checkpoints(every=1, kept=1)
    save(store, 1, policy=policy)
    for step in (2, 3, 4):
        save(store, step, policy=policy, finite=False)
    assert store.steps() == [1, 4]
    manifest, problems = store.newest()
    assert manifest.step == 1
    assert problems == ["step-00000004: not all of its arrays are finite; it is evidence, not to be resumed"]


class Death(BaseException):
    """The process ends here."""


def dying(monkeypatch, number):
    """From now on the ``number``-th call that changes a folder is the last thing that this process does."""
    left = [number]
    for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync"):
        healthy = getattr(os, name)

        def call(*arguments, healthy=healthy, **named):
            left[0] -= 1
            if left[0] < 0:
                raise Death
            return healthy(*arguments, **named)

        monkeypatch.setattr(os, name, call)
    return left


@given(st.integers(0, 60), st.integers(1, 3), st.integers(1, 2))
def test_death_at_any_change_of_a_folder_leaves_what_was_complete(tmp_path_factory, number, kept, ranks):
    """Three checkpoints are there; a fourth and a fifth are written, and old ones removed, until the process ends.

    What is found then is whole, the newest that was completed, and the next training that owns the folder saves again.
    """
    folder = tmp_path_factory.getbasetemp() / "dying"
    shutil.rmtree(folder, ignore_errors=True)
    store, policy = Store(folder), Checkpoints(every=1, kept=kept)
    with store.owned():
        for step in (1, 2, 3):
            save(store, step, ranks, policy)
    done = 3
    with pytest.MonkeyPatch.context() as patch, suppress(Death), store.owned():
        dying(patch, number)
        for step in (4, 5):
            save(store, step, ranks, policy)
            done = step
    manifest, problems = Store(folder).newest()
    assert manifest.step in (done, done + 1)
    assert problems == []
    assert len({part.arrays.digest for part in manifest.ranks}) == ranks
    with store.owned():
        assert not [path for path in folder.iterdir() if path.suffix in (".part", ".gone")]
        save(store, 6, ranks, policy)
    assert store.newest()[0].step == 6


def test_keeping_one_and_dying_while_the_next_is_written_leaves_one(store, monkeypatch):
    policy = Checkpoints(every=1, kept=1)
    save(store, 1, policy=policy)
    with monkeypatch.context() as patch, suppress(Death):
        dying(patch, 3)
        save(store, 2, policy=policy)
    assert store.steps() == [1]
    assert store.newest()[0].step == 1


def test_a_second_training_in_the_same_folder_is_refused(store):
    save(store, 1)
    script = (
        "from pathlib import Path\n"
        "from harness.checkpoints.store import Store\n"
        f"with Store(Path({str(store.folder)!r})).owned(): pass"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "CheckpointError: checkpoints: another training saves into this folder; wait for it, or name" in done.stderr
    assert store.steps() == [1]


def test_an_older_one_that_is_saved_again_takes_its_place(store):
    """As when the newest was damaged, and training went on from the one before."""
    save(store, 1)
    save(store, 2)
    (store.path(2) / "rank-0.json").write_text("{}")
    assert store.newest()[0].step == 1
    save(store, 2)
    assert store.newest()[0].step == 2


def test_a_rank_that_does_not_save_is_missed(store):
    folder = store.begin(1)
    with pytest.raises(CheckpointError, match=r"step-00000001\.part: 2 of 2 ranks did not save in 0\.05 s"):
        store.announced(folder, 2, seconds=0.05)
    assert store.newest() == (None, [])


def save_many(store):
    for step in range(2, 20):
        save(store, step)


def test_a_full_disk_leaves_the_old_ones(tmp_path):
    """A file system of 64 KiB."""
    small = tmp_path / "small"
    with file_system(small, "size=64k"):
        full = Store(small / "checkpoints")
        with full.owned():
            save(full, 1)
            (small / "filling").write_bytes(b"x" * 40_000)
            with pytest.raises((OSError, ResultsError)):
                save_many(full)
        assert full.newest()[0].step >= 1
        assert full.newest()[1] == []


def test_a_file_that_may_not_grow_leaves_the_old_ones(store):
    """The system refuses to write, to any user: no file of this process may pass 300 bytes."""
    save(store, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    try:
        with pytest.raises((OSError, ResultsError)):
            save(store, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (store.steps(), store.newest()[0].step) == ([1], 1)
    save(store, 2)
    assert store.newest()[0].step == 2


def test_a_read_only_file_system_is_named(tmp_path):
    message = "checkpoints can't be written: Read-only file system; name another"
    fixed = Store(tmp_path / "fixed" / "checkpoints")
    with file_system(tmp_path / "fixed", "ro"), pytest.raises(CheckpointError, match=message), fixed.owned():
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "checkpoints").write_text("a file")
    with (
        pytest.raises(CheckpointError, match=r"checkpoints can't be written: .*; name another"),
        Store(tmp_path / "checkpoints").owned(),
    ):
        pass


def test_a_copy_holds_complete_ones_alone(two, tmp_path):
    store = copied(two, tmp_path / "c")
    store.begin(30)
    copy(store.folder, tmp_path / "d", 10)
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["step-00000010", "step-00000020"]
    with pytest.raises(CheckpointError, match="can't be copied: File exists; free the disk"):
        copy(store.folder, tmp_path / "d", 10)


def test_a_checkpoint_that_cannot_be_read_stands_in_nobodys_way(two, tmp_path):
    """A link to nothing can't be copied."""
    store = copied(two, tmp_path / "c")
    broken = store.path(20) / "rank-0.json"
    broken.unlink()
    broken.symlink_to("nowhere")
    assert store.newest()[0].step == 10
    copy(store.folder, tmp_path / "d", 10)
    assert Store(tmp_path / "d").steps() == [10]
    with pytest.raises(CheckpointError, match=r"step-00000020 can't be copied: .*No such file"):
        copy(store.folder, tmp_path / "e", 20)


def test_nothing_is_nothing(tmp_path):
    assert Store(tmp_path / "none").newest() == (None, [])
    assert KEEP_ALL.kept == 1000
