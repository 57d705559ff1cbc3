import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Scenario, corpus
from harness.corpus import MarkovSource, evenly_spaced, sample_order
from harness.errors import DataError


def test_default_text_is_the_prose_of_the_wheel():
    loaded = corpus.load(Scenario(sequence=128), Path())
    assert loaded.train.shape[1] == 129
    assert len(loaded.train) + len(loaded.held_out) == 5594
    assert bytes(loaded.train[0].astype(np.uint8)).isascii()
    assert loaded.digest == "text-96524ec0731d24fc"


def test_windows_cover_the_text_and_splits_are_disjoint(tmp_path):
    text = bytes(range(97, 97 + 20)) * 11
    (tmp_path / "prose.txt").write_bytes(text)
    loaded = corpus.load(Scenario(data="text:prose.txt", sequence=20), tmp_path)
    assert len(loaded.train) == 9
    assert len(loaded.held_out) == 1
    assert bytes(loaded.train[0].astype(np.uint8)) == text[:21]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "can't be read: No such file or directory; name an existing text file"),
        (b"caf\xe9 au lait" * 100, "byte 3 is not UTF-8; convert the file"),
        (b"too short", r"has 9 bytes; sequence=16 with a held-out split needs 161"),
        (b"", "has 0 bytes"),
    ],
)
def test_bad_text_is_refused_by_name(tmp_path, content, message):
    if content is not None:
        (tmp_path / "prose.txt").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        corpus.load(Scenario(data="text:prose.txt", sequence=16), tmp_path)
    assert "text:prose.txt" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


@given(st.integers(1, 40), st.integers(1, 10), st.integers(1, 50), st.integers(0, 3))
def test_every_epoch_sees_every_window_once(windows, batch, steps, seed):
    order = sample_order(windows, batch, steps, seed)
    assert order.shape == (steps, batch)
    per_epoch = math.ceil(windows / batch)
    for start in range(0, steps - per_epoch + 1, per_epoch):
        epoch = order[start : start + per_epoch].ravel()
        assert sorted(epoch[epoch >= 0]) == list(range(windows))


@given(st.integers(1, 40), st.integers(1, 10), st.integers(1, 30), st.integers(0, 30), st.integers(0, 3))
def test_order_goes_on_from_any_update_as_if_it_had_never_stopped(windows, batch, steps, done, seed):
    whole = sample_order(windows, batch, done + steps, seed)
    seen = int((whole[:done] >= 0).sum())
    assert (sample_order(windows, batch, steps, seed, seen) == whole[done:]).all()


def test_the_place_in_the_data_is_counted_in_samples():
    """Five updates of four, then batches of eight: they go on with the twenty-first sample."""
    (epoch,) = sample_order(64, 64, 1, seed=3)
    assert (sample_order(64, 8, 2, seed=3, seen=20).ravel() == epoch[20:36]).all()


def test_thirty_batches_and_ten_more_make_forty_also_after_a_second_time():
    whole = sample_order(1000, 4, 60, seed=0)
    assert (sample_order(1000, 4, 10, 0, seen=30 * 4) == whole[30:40]).all()
    assert (sample_order(1000, 4, 10, 0, seen=40 * 4) == whole[40:50]).all()


def test_nine_samples_of_four_make_three_updates_an_epoch():
    order = sample_order(9, 4, 9, seed=0)
    assert [(row >= 0).sum() for row in order] == [4, 4, 1] * 3


def test_order_depends_on_seed_and_epoch():
    order = sample_order(64, 64, 2, seed=0)
    assert (order[0] != order[1]).any()
    assert (order[0] != sample_order(64, 64, 1, seed=1)[0]).any()
    assert (order == sample_order(64, 64, 2, seed=0)).all()


def test_entropy_rate_of_known_chains():
    fair = MarkovSource(np.full((4, 4), 0.25))
    assert fair.entropy_rate == pytest.approx(math.log(4))
    cycle = MarkovSource(np.roll(np.eye(3), 1, axis=1))
    assert cycle.entropy_rate == pytest.approx(0.0)
    # Two states, leaving with probability 0.1 and 0.3: stationary (3/4, 1/4).
    lopsided = MarkovSource(np.array([[0.9, 0.1], [0.3, 0.7]]))
    assert lopsided.stationary == pytest.approx([0.75, 0.25])
    h = [-(p * math.log(p) + (1 - p) * math.log(1 - p)) for p in (0.1, 0.3)]
    assert lopsided.entropy_rate == pytest.approx(0.75 * h[0] + 0.25 * h[1])


def test_draws_follow_the_chain():
    source = MarkovSource.default()
    windows = source.draw(2000, 33, seed=7)
    counts = np.zeros((16, 16))
    np.add.at(counts, (windows[:, :-1].ravel(), windows[:, 1:].ravel()), 1)
    frequencies = counts / counts.sum(axis=1, keepdims=True)
    assert np.abs(frequencies - source.transitions).max() < 0.02
    assert source.nll(windows) == pytest.approx(source.entropy_rate, rel=0.01)


def test_markov_training_and_held_out_draws_differ():
    loaded = corpus.load(Scenario(data="markov", steps=3, batch=4, sequence=16, eval_sequences=8), Path())
    assert loaded.train.shape == (12, 17)
    assert loaded.held_out.shape == (8, 17)
    assert (loaded.train[:8] != loaded.held_out).any()
    assert loaded.oracle_nll is not None


@given(st.integers(1, 50), st.integers(1, 60))
def test_evenly_spaced_takes_distinct_windows_from_both_ends(total, count):
    windows = np.arange(total, dtype=np.int32)[:, None]
    taken = evenly_spaced(windows, count).ravel().tolist()
    assert len(taken) == min(total, count)
    assert len(set(taken)) == len(taken)
    assert taken[0] == 0
    if count > 1:
        assert taken[-1] == total - 1


def test_what_changes_training_text_leaves_the_held_out_split(tmp_path):
    (tmp_path / "prose.txt").write_text("One is here. Two is there! Is three? " * 60)
    plain, masked, shuffled = (
        corpus.load(Scenario(data="text:prose.txt", sequence=16, **changes), tmp_path)
        for changes in ({}, {"masking": 0.1}, {"shuffle_sentences": True})
    )
    for changed in (masked, shuffled):
        assert (changed.held_out == plain.held_out).all()
        assert changed.digest == plain.digest
    hidden = masked.train == corpus.IGNORED
    assert 0.05 < hidden.mean() < 0.15
    assert (masked.train[~hidden] == plain.train[~hidden]).all()
    assert len(shuffled.train) == pytest.approx(len(plain.train), abs=1)
    assert (shuffled.train[:50] != plain.train[:50]).any()


RECORDS = b"".join(b"record %d of many\n" % i for i in range(40))


def test_each_record_stands_alone_in_its_row(tmp_path):
    (tmp_path / "r.txt").write_bytes(RECORDS)
    loaded = corpus.load(Scenario(data="records:r.txt", sequence=24), tmp_path)
    assert (len(loaded.train), len(loaded.held_out)) == (36, 4)
    first = loaded.train[0]
    assert bytes(first[first >= 0].astype("uint8")) == b"record 0 of many"
    assert (first[16:] == corpus.IGNORED).all()
    assert loaded.warnings == ()


def test_bad_records_fail_or_are_skipped_and_told(tmp_path):
    (tmp_path / "r.txt").write_bytes(RECORDS + b"\n\xff\n")
    scenario = Scenario(data="records:r.txt", sequence=24)
    with pytest.raises(DataError, match=r"2 of 42 records are bad: 1 empty in line 41; .* or set bad_records='skip'"):
        corpus.load(scenario, tmp_path)
    loaded = corpus.load(scenario.replace(bad_records="skip"), tmp_path)
    assert len(loaded.train) == 36
    assert loaded.warnings == (
        "data='records:r.txt': 2 of 42 records are bad: 1 empty in line 41; 1 not UTF-8 in line 42 (byte 0)",
    )


@pytest.mark.parametrize(
    ("content", "message"), [(b"one\ntwo\n", "has 2 good records; both splits take 10"), (None, "No such file")]
)
def test_records_that_are_too_few_or_none(tmp_path, content, message):
    if content is not None:
        (tmp_path / "r.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        corpus.load(Scenario(data="records:r.txt", sequence=24), tmp_path)


class TestFunctions:
    """Data that a function of the user's makes."""

    SCENARIO = Scenario(data="made_rows:data", sequence=4)

    @pytest.fixture
    def made(self, tmp_path, monkeypatch):
        def make(text):
            (tmp_path / "made_rows.py").write_text(f"import numpy as np\ndef data(scenario):\n    return {text}\n")
            monkeypatch.syspath_prepend(str(tmp_path))
            monkeypatch.delitem(sys.modules, "made_rows", raising=False)
            importlib.invalidate_caches()
            return corpus.load(self.SCENARIO, tmp_path)

        return make

    def test_its_rows_are_those_of_the_corpus(self, made):
        found = made("np.ones((3, 5), np.int64), np.zeros((2, 5), np.int8)")
        assert (found.train.dtype, found.train.shape, found.held_out.shape) == (np.int32, (3, 5), (2, 5))

    def test_other_rows_have_another_digest(self, made):
        one = made("np.ones((3, 5), int), np.zeros((2, 5), int)").digest
        assert made("np.ones((3, 5), int), np.ones((2, 5), int)").digest != one

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("3", r"returned int; return two int32 arrays of \(rows, 5\) tokens"),
            ("np.ones((3, 4), int), np.ones((3, 5), int)", r"rows to train on are int64 of shape \(3, 4\)"),
            ("np.ones((3, 5), int), np.ones((3, 5))", "held-out rows are float64"),
            ("np.ones((3, 5), int), np.ones((0, 5), int)", r"held-out rows are int64 of shape \(0, 5\)"),
            (
                "np.full((3, 5), 300), np.ones((3, 5), int)",
                "rows to train on hold 300; tokens of this model end before 256",
            ),
            ("np.full((3, 5), 2**32), np.ones((3, 5), int)", "rows to train on hold 4294967296"),
            ("[[1], [1, 2]], [[1]]", "rows to train on are no array"),
            ("np.full((3, 5), -2), np.ones((3, 5), int)", "rows to train on hold -2; tokens begin with 0"),
        ],
    )
    def test_rows_that_are_none_are_refused(self, made, text, message):
        with pytest.raises(DataError, match=message):
            made(text)

    def test_only_a_rank_calls_it(self, tmp_path):
        assert corpus.check(self.SCENARIO, tmp_path) is None
