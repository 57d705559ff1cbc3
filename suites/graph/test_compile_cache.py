"""A graph that an earlier process compiled."""

from fixtures.scenarios import SHORT
from harness import hardware

CACHED = SHORT.replace(compile_cache=True, eval_sequences=0)


@hardware("cpu", "gpu", "ascend")
def test_a_second_process_trains_to_the_same_numbers(trainer):
    """Feature: MindSpore's compile cache, filled by one process and used by the next.

    Expectation: the same graph on the same numbers gives losses equal in every bit, and the second process's first
    step, which loads instead of compiling, takes less than 0.6 of the first's.
    """
    cold = trainer.run(CACHED)
    warm = trainer.run(CACHED, fresh=True)
    assert warm.curve("loss") == cold.curve("loss")
    assert warm.curve("grad_norm") == cold.curve("grad_norm")
    assert warm.step_seconds[0] < 0.6 * cold.step_seconds[0]
