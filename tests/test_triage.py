import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.corpus import IGNORED
from harness.report.triage import markdown, plot
from harness.triage import Evidence, Row, broken, conclude, place, read, unusual_rows


def row(text, length=32):
    content = text.encode() if isinstance(text, str) else text
    tokens = np.full(length, IGNORED, np.int32)
    tokens[: len(content)] = np.frombuffer(content, np.uint8)
    return tokens


def evidence(**fields):
    usual = {
        "rank": 0,
        "spike": "step 12: loss is 9; it was about 3, and 5 is a spike",
        "step": 12,
        "made": False,
        "rows": [],
        "checked": 8,
        "before": 0,
        "norms": {"embedding": 1.0, "blocks.0.attention.query.weight": 1.1, "head": 0.9},
        "shares_before": {"embedding": 0.3, "blocks.0.attention.query.weight": 0.4, "head": 0.3},
        "clip_norm": 1.0,
        "learning_rate": 1e-3,
        "scheduled": 1e-3,
        "not_finite": [],
        "curves": {"loss": [3.0, 3.1, 9.0], "grad_norm": [1.0, 1.0, 2.0]},
        "first": 10,
    }
    return Evidence(**{**usual, **fields})


BAD = Row(row=3, position=77, what="broken encoding", detail="token 5")


@pytest.mark.parametrize(
    ("tokens", "what"),
    [
        (row("a healthy row of prose, cut"), None),
        (row(""), "empty"),
        (row("x"), "empty"),
        (row(b"some \xff\xfe bytes"), "broken encoding"),
        (row("aaaaaaaaaaaaaaaaaaaaaaaab"), "repeated"),
        (row("喜欢".encode() + "你".encode()[:2]), None),
        (row("喜".encode()[1:] + "欢你".encode()), None),
        (np.array([5, 300, 7], np.int32), "out of vocabulary"),
        (np.array([5, -3, 7], np.int32), "out of vocabulary"),
    ],
)
def test_rows_that_are_not_as_they_should_be(tokens, what):
    found = unusual_rows(tokens[None], [4], 256, is_text=True)
    assert [each.what for each in found] == ([what] if what else [])
    assert all(each.position == 4 for each in found)


def test_masked_bytes_break_no_encoding():
    tokens = row("喜欢你，也喜欢他")
    tokens[4] = IGNORED
    assert unusual_rows(tokens[None], [0], 256, is_text=True) == []


def test_equal_rows_are_repeated_and_filling_is_nothing():
    windows = np.stack([row("the same row"), row("another row"), row("the same row"), row("")])
    found = unusual_rows(windows, [1, 2, 3, -1], 256, is_text=True)
    assert [(each.row, each.what, each.detail) for each in found] == [
        (0, "repeated", "2 rows of the batch are equal"),
        (2, "repeated", "2 rows of the batch are equal"),
    ]


def test_longer_than_the_context_is_over_long():
    (found,) = unusual_rows(row("a row of many tokens")[None], [0], 256, True, longest=10)
    assert (found.what, found.detail) == ("over-long", "20 tokens of 10")


def test_what_is_no_text_has_no_encoding():
    assert unusual_rows(row(b"\xff\xfe\xff\x01\x02")[None], [0], 256, is_text=False) == []


@given(st.text(min_size=10, max_size=60), st.integers(0, 8), st.integers(0, 8))
def test_a_cut_within_characters_breaks_nothing(text, first, last):
    content = text.encode("utf-8", "ignore")
    cut = content[first : len(content) - last]
    assert broken(np.frombuffer(cut, np.uint8).astype(np.int32)) is None


def test_each_kind_is_named():
    assert conclude([evidence(rows=[BAD])]).fault == "data"
    assert "positions in the training split: 77" in conclude([evidence(rows=[BAD])]).reason
    found = conclude([evidence(norms={"embedding": 1.0, "head": 500.0})])
    assert (found.fault, "'head' on rank 0 makes up 100.0%" in found.reason) == ("gradients", True)
    found = conclude([evidence(norms={"embedding": math.nan, "head": 1.0})])
    assert (found.fault, "the gradient of 'embedding' is no number" in found.reason) == ("gradients", True)
    found = conclude([evidence(not_finite=["blocks.1.norm", "head"])])
    assert found.fault == "parameters"
    assert found.reason == "'blocks.1.norm' on rank 0 was not finite before the update; 2 parameters are not"


def test_parameters_explain_everything_and_rows_come_before_gradients():
    everything = {"rows": [BAD], "norms": {"embedding": math.nan}, "not_finite": ["head"]}
    assert conclude([evidence(**everything)]).fault == "parameters"
    assert conclude([evidence(**{**everything, "not_finite": []})]).fault == "data"
    assert conclude([evidence(**{**everything, "not_finite": [], "rows": []})]).fault == "gradients"


def test_rows_that_were_so_before_are_not_to_blame():
    assert conclude([evidence(rows=[BAD], before=1)]).fault is None
    assert conclude([evidence(rows=[BAD, BAD], before=1)]).fault == "data"


def test_a_layer_that_always_towered_is_not_to_blame():
    usual = {"norms": {"embedding": 500.0, "head": 1.0}, "shares_before": {"embedding": 0.99, "head": 0.01}}
    assert conclude([evidence(**usual)]).fault is None


def test_a_rate_off_its_schedule_and_clipping_that_is_off_are_told():
    assert "the schedule says 0.001" in conclude([evidence(learning_rate=0.1)]).reason
    assert "clipping is off" in conclude([evidence(clip_norm=None)]).reason
    nothing = conclude([evidence()])
    assert (nothing.fault, nothing.reason) == (None, "rows, gradients of all layers, and parameters look as before")


def test_another_ranks_rows_and_parameters_count():
    assert conclude([evidence(), evidence(rank=1, rows=[BAD])]).fault == "data"
    assert "on rank 1" in conclude([evidence(), evidence(rank=1, not_finite=["head"])]).reason


def test_evidence_is_read_rank_by_rank_and_what_is_damaged_is_left_out(tmp_path):
    folder = place(tmp_path, 12)
    folder.mkdir(parents=True)
    for rank in (1, 0):
        (folder / f"rank-{rank}.json").write_text(evidence(rank=rank, norms={"a": math.inf}).model_dump_json())
    (folder / "rank-2.json").write_text('{"rank": 2')
    found = read(tmp_path)
    assert [each.rank for each in found[12]] == [0, 1]
    assert math.isinf(found[12][0].norms["a"])
    assert read(tmp_path / "none") == {}


def test_the_report_goes_from_outside_in():
    found = [evidence(rows=[BAD], not_finite=["head"], norms={"em|bed`ding": math.nan, "head": 2.0})]
    text = markdown(conclude(found), found)
    places = [text.index(f"## {part}") for part in ("Data", "Gradients", "Parameters")]
    assert places == sorted(places)
    assert "This names **parameters**: 'head' on rank 0 was not finite" in text
    assert "| 0 | 3 | 77 | broken encoding | token 5 |" in text
    assert "| 0 | em&#124;bed&#96;ding | nan | – | – |" in text
    assert "Clipping at 1; learning rate 0.001, by its schedule 0.001." in text
    assert "All are numbers." in markdown(conclude([evidence()]), [evidence()])


def test_the_picture_holds_the_steps_and_marks_what_is_no_number():
    import xml.etree.ElementTree as ElementTree

    spiky = evidence(curves={"loss": [3.0, 3.1, math.nan], "<norm>": [1.0, 1.0, 2.0]})
    root = ElementTree.fromstring(plot(spiky))
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "loss, steps 10 to 12" in texts
    assert "<norm>, steps 10 to 12" in texts
    assert "nan" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 2
