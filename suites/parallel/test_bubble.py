"""How long the stages of a pipeline wait, measured, beside what theory says."""

import pytest

from fixtures.scenarios import STAGES
from harness import Layout, cards, hardware
from harness.schedule import bubble_ratio, schedule_of
from harness.timeline import median_idle


@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@cards(2)
def test_idle_shares_are_those_of_the_formula(trainer, gate, schedule):
    """Feature: two stages, 8 and 16 micro-batches, idle share of each rank from the recorded timeline.

    Expectation: (p − 1) / (m + p − 1), 11.1 % and 5.9 %, of all ranks together (Narayanan et al. 2021). A stage whose
    work takes longer makes the other one wait: the last has the head and the loss on top of its blocks, 3 % of the
    work, so idle shares may be off by 3 points, and by twice that on a machine that others use too. A replay of the
    schedule with the measured durations takes the stages' difference into account and messages not at all.
    """
    ratios = {}
    for micro_batches in (8, 16):
        scenario = STAGES.replace(
            layout=Layout(pp=2), batch=micro_batches, micro_batches=micro_batches, pipeline_schedule=schedule
        )
        run = trainer.run(scenario)
        expected = bubble_ratio(2, micro_batches)
        if run.oversubscribed:
            pytest.skip(run.oversubscribed)
        assert median_idle(run.events) == pytest.approx([expected] * 2, abs=0.06)
        assert run["replayed_bubble_ratio"] == pytest.approx(expected, abs=0.06)
        ratios[micro_batches] = run["bubble_ratio"]
        gate.check(run, label=f"{micro_batches}", only=["bubble_ratio", "replayed_bubble_ratio", "in_flight_memory"])
    assert ratios[16] < ratios[8]
    assert ratios[16] - ratios[8] == pytest.approx(bubble_ratio(2, 16) - bubble_ratio(2, 8), abs=0.04)


@hardware("cpu", "gpu", "ascend")
@cards(4)
def test_more_micro_batches_shrink_the_bubble_of_four_stages(trainer):
    """Feature: four stages, 8 and 16 micro-batches; where ranks share cores, by a replay of the measured durations.

    Expectation: 3/11 = 27 % and 3/19 = 16 %. The last of four stages has two blocks, and the head and the loss as well,
    so it is about a tenth slower and the others wait for it: up to 8 points more.
    """
    found = {}
    for micro_batches in (8, 16):
        scenario = STAGES.replace(layout=Layout(pp=4), batch=micro_batches, micro_batches=micro_batches)
        found[micro_batches] = trainer.run(scenario)["replayed_bubble_ratio"]
    assert -0.03 < found[8] - bubble_ratio(4, 8) < 0.09
    assert -0.03 < found[16] - bubble_ratio(4, 16) < 0.09
    assert found[16] < 0.8 * found[8]


@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_1f1b_keeps_less_in_flight_than_gpipe(trainer):
    """Feature: inputs that the last stage keeps for backwards to come, and the peak of the memory pool.

    Expectation: GPipe keeps one of each micro-batch, 1F1B at most stages − rank: one, however many there are. Here an
    input is a row of 128 tokens of 128 float32 features, 64 KiB.
    """
    kept = {}
    for schedule in ("gpipe", "1f1b"):
        for micro_batches in (8, 16):
            scenario = STAGES.replace(
                layout=Layout(pp=2), batch=micro_batches, micro_batches=micro_batches, pipeline_schedule=schedule
            )
            run = trainer.run(scenario)
            kept[schedule, micro_batches] = run["in_flight_memory"]
            assert run["in_flight_memory"] == schedule_of(scenario).in_flight(1) / 16
    assert kept == {("gpipe", 8): 0.5, ("gpipe", 16): 1.0, ("1f1b", 8): 1 / 16, ("1f1b", 16): 1 / 16}
