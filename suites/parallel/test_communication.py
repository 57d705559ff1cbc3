"""What layouts send, how often, and how much of it nothing hides."""

import pytest

from fixtures.scenarios import FOUR_LAYERS, SHORT, STAGES
from harness import Layout, cards, hardware, untimed
from harness.plan import Profile, plan
from harness.timeline import exposure, steps_of, within

PLANNED = {
    "dp4-sharded": SHORT.replace(layout=Layout(dp=4, optimizer_sharding=True)),
    "tp2-pp2": SHORT.replace(layout=Layout(tp=2, pp=2), micro_batches=2),
    "pp2-zero-bubble": SHORT.replace(layout=Layout(pp=2), micro_batches=4, pipeline_schedule="zero_bubble"),
    "pp2-interleaved": FOUR_LAYERS.replace(
        layout=Layout(pp=2), micro_batches=4, pipeline_schedule="interleaved", chunks=2
    ),
}
"""Layouts that test_equivalence.py trains too."""


@untimed
@pytest.mark.nightly
@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_cutting_by_layers_sends_far_less_than_cutting_every_layer(trainer, gate):
    """Feature: bytes of a step, two pipeline stages against two tensor-parallel shards of eight layers.

    Expectation: between stages, the residual stream goes over once, and its gradient comes back once. Tensor
    parallelism sums it over the ranks four times a layer (twice forward, twice backward), and twice more around the
    layers: 4 · 8 + 2 = 34 times as much as goes one way for eight layers; one to two orders for real models too.
    """
    by_layers = trainer.run(STAGES.replace(layout=Layout(pp=2), micro_batches=8))
    every_layer = trainer.run(STAGES.replace(layout=Layout(tp=2)))
    stream = 4 * STAGES.batch * STAGES.sequence * 160 / 2**20
    assert by_layers["communication_volume"] == pytest.approx(stream, rel=1e-3)
    assert every_layer["communication_volume"] == pytest.approx((4 * 8 + 2) * stream, rel=1e-2)
    assert 10 < every_layer["communication_volume"] / by_layers["communication_volume"] < 100
    gate.check(by_layers, label="by layers", only=["communication_calls", "communication_volume"])
    gate.check(every_layer, label="every layer", only=["communication_calls", "communication_volume"])


@untimed
@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name == "dp4-sharded")) for name in PLANNED]
)
@cards(4)
def test_layouts_send_what_was_planned(trainer, name):
    """Feature: bytes that the busiest rank gives to collectives and messages in a step, beside ``harness plan``.

    Expectation: within 2 %: the plan leaves out single values, and rows of the loss over a spread vocabulary.
    """
    scenario = PLANNED[name]
    planned = plan(scenario, Profile.read("ascend-910b")).cost.traffic
    sent = sum(each.calls * each.bytes for each in planned) / 2**20
    assert trainer.run(scenario)["communication_volume"] == pytest.approx(sent, rel=0.02)


@untimed
@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_accumulation_divides_the_calls(trainer):
    """Feature: four parts accumulated before one reduction, against an update for each part.

    Expectation: one call an update either way, so a quarter of the calls, and of the bytes, for the same sequences.
    """
    each = trainer.run(SHORT.replace(layout=Layout(dp=2)))
    accumulated = trainer.run(
        SHORT.replace(layout=Layout(dp=2), batch=4 * SHORT.batch, accumulation=4, steps=3, eval_sequences=0)
    )
    for name in ("communication_calls", "communication_volume"):
        assert accumulated[name] / (4 * SHORT.batch) == each[name] / SHORT.batch / 4


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize("layout", ["data", "pipeline"])
@cards(2)
def test_communication_is_hidden_or_exposed(trainer, gate, layout):
    """Feature: time in collectives and messages, from each rank's recorded events.

    Expectation: what is hidden behind computing and what is exposed make the whole. The reduction of gradients comes
    after all of them are there, so none of it is hidden. A pipeline's messages are under way while stages compute, so
    some of it is, on the rank that is not already waiting for them.
    """
    scenario = {
        "data": SHORT.replace(layout=Layout(dp=2)),
        "pipeline": STAGES.replace(layout=Layout(pp=2), micro_batches=8),
    }[layout]
    run = trainer.run(scenario)
    hidden = 0.0
    for step in steps_of(run.events)[-3:]:
        for rank in range(2):
            found = exposure(within(run.events, step), rank)
            assert found.overlapped + found.exposed == pytest.approx(found.total)
            assert found.total > 0
            assert 0 <= found.share < 1
            hidden += found.overlapped
    assert (hidden == 0) == (layout == "data")
    gate.check(run, only=["exposed_communication"])
