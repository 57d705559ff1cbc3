"""What ``harness plan`` says of memory, beside what runs use."""

from typing import Any

import pytest

from fixtures.scenarios import ORDERED
from harness import Layout, Scenario, cards, hardware, untimed
from harness.plan import pool_peak

pytestmark = untimed

WIDE = Scenario(
    model="decoder:layers=4,width=256,heads=8,feed_forward=704",
    steps=3,
    batch=8,
    eval_sequences=0,
    execution_order="graph",
)
"""Parameters weigh more than activations."""

ONE = {
    "deep": ORDERED,
    "recompute": ORDERED.replace(recompute="full"),
    "middle": ORDERED.replace(recompute="middle"),
    "twice the batch": ORDERED.replace(batch=16, steps=2),
    "twice the sequence": ORDERED.replace(sequence=256, steps=2),
    "accumulation": ORDERED.replace(batch=32, accumulation=4, steps=2),
    "wide": WIDE.replace(batch=2, sequence=64),
    "vocabulary": WIDE.replace(model="decoder:layers=2,width=128,heads=4,feed_forward=384,vocabulary=8192"),
}
TWO = {
    "tp2": ORDERED.replace(layout=Layout(tp=2), steps=3),
    "pp2": WIDE.replace(layout=Layout(pp=2), micro_batches=2),
    "pp2 gpipe": WIDE.replace(layout=Layout(pp=2), micro_batches=8, pipeline_schedule="gpipe"),
    "dp2 sharded": WIDE.replace(layout=Layout(dp=2, optimizer_sharding=True)),
}
NIGHTLY = {"middle", "tp2", "twice the batch", "twice the sequence", "vocabulary", "pp2", "pp2 gpipe", "dp2 sharded"}


def named(scenarios: dict[str, Scenario]) -> list[Any]:
    """Parameters of a test, those that take long marked so."""
    return [pytest.param(name, marks=[pytest.mark.nightly] * (name in NIGHTLY)) for name in scenarios]


@hardware("cpu")
@pytest.mark.parametrize("name", named(ONE))
def test_the_pools_peak_is_as_planned(trainer, name):
    """Feature: the peak of MindSpore's pool on CPU, one process.

    Expectation: within 15 % of the model, or 2 MiB, for the pool tells whole ones.
    """
    assert trainer.run(ONE[name])["peak_memory"] == pytest.approx(pool_peak(ONE[name]), rel=0.15, abs=2)


@hardware("cpu")
@pytest.mark.parametrize("name", named(TWO))
@cards(2)
def test_the_peak_of_layouts_is_as_planned(trainer, name):
    """Feature: the same, of the fuller of two ranks.

    Expectation: within 15 %, or 2 MiB. A device's states are exactly as planned, of a sharded optimizer up to a matrix.
    """
    scenario = TWO[name]
    run = trainer.run(scenario)
    assert run["peak_memory"] == pytest.approx(pool_peak(scenario), rel=0.15, abs=2)


@hardware("cpu")
def test_the_peak_is_linear_in_the_batch(trainer):
    """Feature: batches of 8, 16 and 32 rows.

    Expectation: every further row takes the same, as the model says: the second step is twice the first.
    """
    peaks = [
        trainer.run(ORDERED.replace(batch=batch, steps=steps))["peak_memory"]
        for batch, steps in ((8, ORDERED.steps), (16, 2), (32, 2))
    ]
    first, second = peaks[1] - peaks[0], peaks[2] - peaks[1]
    assert second == pytest.approx(2 * first, abs=4)
    planned = pool_peak(ORDERED.replace(batch=16)) - pool_peak(ORDERED)
    assert first == pytest.approx(planned, rel=0.15)
