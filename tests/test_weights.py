import json

import pytest

from harness import Scenario, weights
from harness.errors import DataError
from harness.weights import FILE, MANIFEST, Manifest, digest, read


@pytest.fixture
def folder(tmp_path):
    (tmp_path / FILE).write_bytes(b"w" * 1000)
    manifest = Manifest(scenario=Scenario().to_dict(), step=3, size=1000, digest=digest(tmp_path / FILE))
    manifest.write(tmp_path)
    return tmp_path


def test_whole_weights_are_read(folder):
    assert read(folder).step == 3
    assert Scenario.from_dict(read(folder).scenario) == Scenario()


@pytest.mark.parametrize("cut", [0, 1, 999, 1001])
def test_a_file_of_another_length_is_named(folder, cut):
    (folder / FILE).write_bytes(b"w" * cut)
    with pytest.raises(DataError, match=rf"weights\.safetensors has {cut} bytes of 1000; train again"):
        read(folder)


def test_a_flipped_byte_is_found(folder):
    (folder / FILE).write_bytes(b"w" * 999 + b"v")
    with pytest.raises(DataError, match="is not what was saved"):
        read(folder)


@pytest.mark.parametrize("name", [FILE, MANIFEST])
def test_what_is_missing_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"{name}: No such file or directory; a run with keep_weights=True leaves them"):
        read(folder)


NEWER = '"schema_version": 1', '"schema_version": 2'


@pytest.mark.parametrize("change", [lambda text: text[:-20], lambda text: text.replace(*NEWER)])
def test_a_damaged_manifest_is_refused(folder, change):
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(change(text))
    with pytest.raises(DataError, match=r"manifest\.json is damaged"):
        read(folder)


def test_the_digest_is_of_the_content(folder):
    assert len(read(folder).digest) == 16
    assert json.loads((folder / MANIFEST).read_text())["digest"] == weights.digest(folder / FILE)
