"""The way of rows to training: their order, and whether training waits for them."""

import pytest

from fixtures.scenarios import SHORT
from harness import hardware, smoke, untimed

WORKERS = SHORT.replace(steps=6, eval_sequences=0)


@untimed
@hardware("cpu", "gpu", "ascend")
def test_any_number_of_workers_gives_the_same_order(trainer):
    """Feature: rows fetched by one thread, by two, and by two processes.

    Expectation: a fixed seed plans the order before anybody fetches, so losses are equal in every bit.
    """
    one = trainer.run(WORKERS)
    for changes in ({"data_workers": 2}, {"data_workers": 2, "data_processes": True}):
        assert trainer.run(WORKERS.replace(**changes)).curve("loss") == one.curve("loss"), changes


@hardware("cpu", "gpu", "ascend")
def test_training_does_not_wait_for_its_rows(trainer, gate):
    """Feature: share of the steady time that training waits for its next rows, over more steps than are fetched ahead.

    Expectation: rows are fetched while the step before computes, and one is a view of memory, so that it is a few
    percent at most; from 30 % on the session names the data pipeline as the bottleneck. MindSpore fetches some twenty
    batches ahead while the first step compiles: fewer steps than that would never wait.
    """
    run = trainer.run(SHORT.replace(steps=60, eval_sequences=0))
    assert run["data_wait"] < 0.15
    assert not run.warnings
    gate.check(run, only=["data_wait"])


@untimed
@hardware("cpu", "gpu", "ascend")
def test_workers_leave_the_host_memory_flat(trainer):
    """Feature: host memory of a rank and two worker processes over 300 steps, five passes and more over a short text.

    Expectation: as without workers, flat: the lower end of the slope's interval under 2 MiB in a hundred steps.
    """
    workers = {"data_workers": 2, "data_processes": True}
    scenario = SHORT.replace(data="text:docs/architecture.md", steps=300, sequence=32, eval_sequences=0, **workers)
    run = trainer.run(scenario)
    grown = run.host_memory_growth
    assert 100 * grown.low < 2, f"{100 * grown.slope:.1f} MiB in a hundred steps, from {run.host_memory[0]:.0f}"


@untimed
@hardware("cpu", "gpu", "ascend")
@pytest.mark.parametrize(
    "change", [pytest.param({"masking": 0.1}, marks=smoke), {"shuffle_sentences": True}], ids=["masking", "shuffling"]
)
def test_augmented_data_is_learned_all_the_same(trainer, gate, change):
    """Feature: a tenth of the tokens masked, and sentences shuffled, in the training split alone.

    Expectation: another training, whose held-out perplexity after a few steps is near that of the plain one: nothing of
    the held-out split was touched.
    """
    plain, changed = trainer.run(SHORT), trainer.run(SHORT.replace(**change))
    assert changed.curve("loss") != plain.curve("loss")
    assert changed["validation_perplexity"] == pytest.approx(plain["validation_perplexity"], rel=0.1)
    gate.check(changed, only=["loss", "validation_perplexity"])
