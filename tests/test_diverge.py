import math
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness import trace
from harness.diverge import compare, relative_distance
from harness.errors import ResultsError
from harness.metrics.sketch import signs, sketch
from harness.report.divergence import layer_table, verdict
from harness.trace import Layer, Piece, RankStep

PARAMETERS = ("embedding.weight", "blocks.0.weight", "head.weight")


def piece(name, values, place=0, shard=0, shards=1):
    values = np.asarray(values, np.float32)
    found = sketch(name, values, 0, shard, shards)
    norm = float(np.sqrt(np.square(values, dtype=np.float64).sum()))
    return Piece(place=place, digest=zlib.crc32(values.tobytes()), norm=norm, sketch=found)


def values(name, step):
    return np.random.default_rng([step, len(name)]).standard_normal(64).astype(np.float32)


def run(steps=(1, 2, 3), change=lambda step, kind, name, place, found: found, dp=1, tp=1):
    """A trace of a small training, spread over dp × tp ranks, with something changed."""
    found = {}
    for step in steps:
        for rank in range(dp * tp):
            replica, shard = divmod(rank, tp)
            layers = [Layer(kind="rows", name="rows", pieces=[])]
            rows = range(replica * 4 // dp, (replica + 1) * 4 // dp)
            for row in rows:
                token = change(step, "rows", "rows", row, np.arange(3) + row)
                layers[0].pieces.append(Piece(place=row, digest=int(token.sum()), norm=0.0, sketch=[]))

            def cut(kind, name, step=step, shard=shard, rank=rank):
                whole = values(name + kind, step)
                own = change(step, kind, name, rank, np.split(whole, tp)[shard])
                return Layer(kind=kind, name=name, shards=tp, pieces=[piece(name, own, shard, shard, tp)])

            layers += [cut("parameter", name) for name in PARAMETERS]
            for name in ("embedding", "blocks.0"):
                pieces = [piece(name, change(step, "activation", name, r, values(f"{name}{r}", step)), r) for r in rows]
                layers.append(Layer(kind="activation", name=name, pieces=pieces))
            layers += [cut("gradient", name) for name in PARAMETERS]
            found.setdefault(step, []).append(RankStep(rank=rank, step=step, layers=layers))
    return found


def at(step, kind, name, place, by):
    """Moves one place from one step on."""
    wanted = (kind, name, place)

    def change(now, *where_and_found):
        *where, found = where_and_found
        return found + by if now >= step and tuple(where) == wanted else found

    return change


LAYOUTS = [{}, {"dp": 2}, {"tp": 2}, {"dp": 2, "tp": 2}]


@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_the_same_training_never_parts_whatever_the_layouts(one, other):
    found = compare(run(**one), run(**other))
    assert found.parting is None
    assert found.steps == [1, 2, 3]
    if one == other:
        assert found.first_bits is None
        assert verdict(found, 1e-5) == [
            "no place of 3 traced steps is further apart than 1e-05",
            "all are equal in every bit",
        ]
        assert layer_table(found) is None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("kind", "name", "place"),
    [
        ("rows", "rows", 2),
        ("parameter", "blocks.0.weight", 0),
        ("activation", "blocks.0", 3),
        ("gradient", "head.weight", 0),
    ],
)
def test_the_first_place_is_named(layout, kind, name, place):
    found = compare(run(**layout), run(change=at(2, kind, name, place, 1), **layout)).parting
    assert (found.step, found.kind, found.name) == (2, kind, name)
    assert found.row == (place if kind in ("rows", "activation") else None)
    assert found.relative > 0.1


def test_the_rank_is_named_where_layouts_are_equal():
    assert compare(run(dp=2), run(dp=2, change=at(2, "gradient", "head.weight", 1, 1.0))).parting.rank == 1
    assert compare(run(tp=2), run(tp=2, change=at(2, "gradient", "head.weight", 1, 1.0))).parting.rank == 1
    assert compare(run(), run(dp=2, change=at(2, "gradient", "head.weight", 1, 1.0))).parting.rank == 1
    assert compare(run(), run(dp=2, change=at(2, "activation", "blocks.0", 3, 1.0))).parting.rank == 1


def test_replicas_that_differ_are_compared_rank_by_rank():
    faulty = run(dp=2, change=at(2, "gradient", "head.weight", 1, 1.0))
    assert compare(faulty, faulty).first_bits is None


def test_two_ways_of_cutting_are_compared_as_wholes():
    """Neither has a checksum of the whole."""
    assert compare(run(tp=2), run(tp=4)).parting is None
    found = compare(run(tp=2), run(tp=4, change=at(2, "parameter", "head.weight", 3, 1.0))).parting
    assert (found.step, found.name) == (2, "head.weight")


def test_what_comes_first_explains_what_comes_after():
    """Rows before parameters, before activations forward, before gradients backward."""
    everything = [("rows", "rows", 0), ("parameter", "head.weight", 0), ("activation", "embedding", 0)]
    everything += [("activation", "blocks.0", 0), ("gradient", "head.weight", 0), ("gradient", "embedding.weight", 0)]
    for first in range(len(everything)):
        changes = [at(2, *where, 1) for where in everything[first:]]

        def change(step, kind, name, place, found, changes=changes):
            for each in changes:
                found = each(step, kind, name, place, found)
            return found

        found = compare(run(), run(change=change)).parting
        assert (found.kind, found.name) == everything[first][:2]


def test_rounding_is_told_and_is_no_parting():
    found = compare(run(), run(change=at(2, "activation", "blocks.0", 1, 1e-7)))
    assert found.parting is None
    assert (found.first_bits.step, found.first_bits.name, found.first_bits.row) == (2, "blocks.0", 1)
    assert verdict(found, 1e-5)[1].startswith(
        "the first that is not equal in every bit is step 2: activation 'blocks.0'"
    )
    assert compare(run(), run(change=at(2, "activation", "blocks.0", 1, 1e-7)), tolerance=0.0).parting.step == 2


def test_no_number_is_infinitely_far():
    found = compare(run(), run(change=at(3, "parameter", "head.weight", 0, math.nan)))
    assert (found.parting.step, found.parting.relative) == (3, math.inf)
    same = run(change=at(3, "parameter", "head.weight", 0, math.nan))
    assert compare(same, same).parting is None


@given(st.floats(1e-3, 10.0), st.integers(0, 5))
def test_the_distance_is_about_what_it_is(share, seed):
    random = np.random.default_rng(seed)
    one, noise = random.standard_normal((2, 4096))
    other = one + share * noise
    true = np.linalg.norm(share * noise) / max(np.linalg.norm(one), np.linalg.norm(other))
    assert relative_distance(piece("x", one), piece("x", other)) == pytest.approx(true, rel=0.7)


def test_signs_are_those_of_the_sketch():
    array = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    by_signs = (signs("name", array.shape) * array.astype(np.float64)).sum((1, 2))
    assert by_signs.tolist() == pytest.approx(sketch("name", array))


def test_what_one_run_alone_holds_is_told():
    """Half of a run's trace is missing, and what is left agrees."""
    half = run()
    for step in half.values():
        step[0].layers = [layer for layer in step[0].layers if layer.name != "head.weight"]
    found = compare(run(), half)
    assert found.alone == ["gradient 'head.weight'", "parameter 'head.weight'"]
    assert verdict(found, 1e-5)[1:] == [
        "what both hold is equal in every bit",
        "one of the runs alone holds gradient 'head.weight', parameter 'head.weight': nothing was compared with them",
    ]
    fewer = run()
    for layer in fewer[2][0].layers:
        if layer.name == "blocks.0":
            del layer.pieces[-1]
    assert compare(run(), fewer).alone == ["rows of activation 'blocks.0'"]


def test_interleaved_stages_are_compared_in_the_order_of_the_model():
    """The first rank holds blocks 0 and 2, the second 1 and 3; all but the first differ."""

    def stages(by):
        ranks = []
        for rank in (0, 1):
            blocks = [f"blocks.{number}" for number in (rank, rank + 2)]
            pieces = {name: piece(name, values(name, 1) + by * (name != "blocks.0")) for name in blocks}
            kinds = ("activation", "gradient")
            layers = [Layer(kind=kind, name=name, pieces=[pieces[name]]) for kind in kinds for name in blocks]
            ranks.append(RankStep(rank=rank, step=1, layers=layers))
        return {1: ranks}

    assert compare(stages(0.0), stages(1.0)).parting.name == "blocks.1"
    only_back = {1: [each.model_copy(update={"layers": each.layers[2:]}) for each in stages(1.0)[1]]}
    assert compare(stages(0.0), only_back).parting.name == "blocks.3"


def test_steps_that_nobody_traced_and_models_that_have_nothing_in_common_are_refused():
    with pytest.raises(ResultsError, match=r"traced no step in common, 1, 2, 3 and 4, 8; use one trace_every"):
        compare(run(), run(steps=(4, 8)))
    bare = {1: [RankStep(rank=0, step=1)]}
    with pytest.raises(ResultsError, match="no layer in common"):
        compare(bare, bare)


def test_a_trace_is_read_and_a_cut_line_is_left_out(tmp_path):
    for step in run().values():
        with trace.file(tmp_path, 0).open("a") as file:
            file.write(step[0].model_dump_json() + "\n")
    with trace.file(tmp_path, 0).open("a") as file:
        file.write('{"rank": 0, "step": 4, "lay')
    assert trace.read(tmp_path) == run()
    trace.file(tmp_path, 1).write_text("no trace\n")
    with pytest.raises(ResultsError, match=r"trace-1\.jsonl, line 1 is damaged; run it again"):
        trace.read(tmp_path)
    with pytest.raises(ResultsError, match="holds no trace; run it with trace_every=N"):
        trace.read(tmp_path / "none")


def test_the_table_shows_the_layers_around_the_parting():
    found = compare(run(), run(change=at(2, "gradient", "blocks.0.weight", 0, 1.0)))
    console = Console(width=160, record=True)
    console.print(layer_table(found))
    text = console.export_text()
    assert "gradient" in text
    assert "blocks.0.weight" in text
    lines = verdict(found, 1e-5)
    assert lines[0].startswith("the runs part at step 2: gradient 'blocks.0.weight', rank 0: relative distance ")
    assert lines[1] == "at step 1, the last before that was traced, they agree within 1e-05"
