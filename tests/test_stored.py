import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Scenario, corpus, stored
from harness.corpus import StoredRows
from harness.errors import DataError
from harness.stored import File, Manifest, held_out, rows_per_shard


def folder(tmp_path, sequence=8, rows=5):
    (tmp_path / "train-0.mindrecord").write_bytes(b"x" * 100)
    np.save(tmp_path / stored.HELD_OUT, np.zeros((2, sequence + 1), np.int32))
    files = [File(name=path.name, size=path.stat().st_size) for path in sorted(tmp_path.iterdir())]
    manifest = Manifest(data="text-1", sequence=sequence, rows=rows, shards=["train-0.mindrecord"], files=files)
    manifest.write(tmp_path)
    return tmp_path


def test_a_whole_folder_is_a_corpus(tmp_path):
    (tmp_path / "c").mkdir()
    folder(tmp_path / "c")
    loaded = corpus.load(Scenario(data="mindrecord:c", sequence=8), tmp_path)
    assert loaded.train == StoredRows((str(tmp_path / "c" / "train-0.mindrecord"),), 5)
    assert len(loaded.train) == 5
    assert loaded.held_out.shape == (2, 9)
    assert loaded.digest == "text-1"


def test_prompts_are_not_cut_from_records(tmp_path):
    manifest = stored.read(folder(tmp_path), "mindrecord:.")
    manifest.model_copy(update={"data": "records-1"}).write(tmp_path)
    assert corpus.load(Scenario(data="mindrecord:.", sequence=8), tmp_path).digest == "records-1"
    with pytest.raises(DataError, match=r"samples=2 and .* disagree: it was made of records"):
        corpus.load(Scenario(data="mindrecord:.", sequence=8, samples=2), tmp_path)


def test_another_sequence_is_refused(tmp_path):
    folder(tmp_path)
    with pytest.raises(DataError, match=r"sequence=16 and .* disagree: it was converted with sequence=8"):
        corpus.load(Scenario(data="mindrecord:.", sequence=16), tmp_path)


@pytest.mark.parametrize("size", [0, 1, 99, 101])
def test_a_file_of_another_length_is_named(tmp_path, size):
    (folder(tmp_path) / "train-0.mindrecord").write_bytes(b"x" * size)
    with pytest.raises(DataError, match=rf"train-0.mindrecord has {size} bytes of 100; convert the text again"):
        stored.read(tmp_path, "mindrecord:x")


def test_a_missing_file_is_named(tmp_path):
    (folder(tmp_path) / "train-0.mindrecord").unlink()
    with pytest.raises(DataError, match=r"train-0\.mindrecord: No such file"):
        stored.read(tmp_path, "mindrecord:x")


def test_a_folder_without_a_manifest_is_no_conversion(tmp_path):
    (folder(tmp_path) / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"can't be read: manifest.json: No such file .*; convert the text again"):
        stored.read(tmp_path, "mindrecord:x")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace('"schema_version": 1', '"schema_version": 2'),
        lambda text: text.replace('"train-0.mindrecord",\n   "size"', '"../train-0.mindrecord",\n   "size"'),
        lambda text: text.replace('"rows": 5', '"rows": "five"'),
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path, change):
    path = folder(tmp_path) / "manifest.json"
    changed = change(path.read_text())
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.raises(DataError, match=r"manifest\.json is damaged"):
        stored.read(tmp_path, "mindrecord:x")


def test_shards_are_files_of_the_folder(tmp_path):
    path = folder(tmp_path) / "manifest.json"
    content = json.loads(path.read_text())
    content["shards"] = ["../../elsewhere"]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"manifest\.json is damaged"):
        stored.read(tmp_path, "mindrecord:x")


def test_nothing_pickled_is_loaded(tmp_path):
    np.save(tmp_path / stored.HELD_OUT, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"held_out\.npy is damaged"):
        held_out(tmp_path, "mindrecord:x")


@given(st.integers(1, 10**10), st.integers(2, 10_000))
def test_no_shard_passes_its_bound(bound, tokens):
    try:
        rows = rows_per_shard(bound, tokens)
    except DataError:
        assert bound < stored.HEADER + 2 * stored.PAGE + 4 * tokens + stored.OVERHEAD
    else:
        assert rows >= 1
        assert rows * (4 * tokens + stored.OVERHEAD) + stored.HEADER + 2 * stored.PAGE <= min(bound, stored.LARGEST)


def test_no_shard_outgrows_its_header_whatever_is_allowed():
    assert rows_per_shard(10**12, 129) == rows_per_shard(stored.LARGEST, 129)


def test_a_bound_below_one_row_says_what_would_do():
    with pytest.raises(DataError, match="shards of at most 1000000 bytes are too small for a row; allow at least 4 MB"):
        rows_per_shard(1_000_000, 129)
    rows_per_shard(4_000_000, 129)
