"""Long runs take no more memory than short ones."""

from fixtures.scenarios import SHORT
from harness import hardware, untimed

pytestmark = untimed

LONG = SHORT.replace(steps=300, sequence=32, eval_sequences=0)


@hardware("cpu", "gpu", "ascend")
def test_three_hundred_steps_leave_the_host_memory_flat(trainer):
    """Feature: host memory of the rank and its children, every third step; its slope by Theil and Sen.

    Expectation: flat. The lower end of the slope's interval stays under 2 MiB in a hundred steps, the first third left
    out, in which caches fill; keeping one batch a step alone would be more than 3.
    """
    run = trainer.run(LONG)
    grown = run.host_memory_growth
    assert 100 * grown.low < 2, f"{100 * grown.slope:.1f} MiB in a hundred steps, from {run.host_memory[0]:.0f}"
