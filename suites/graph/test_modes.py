"""What compiling a graph gains, and what it takes."""

from fixtures.scenarios import SHORT
from harness import hardware, smoke


@smoke
@hardware("cpu", "gpu", "ascend")
def test_a_graph_is_faster_and_takes_time_to_compile(trainer, gate):
    """Feature: step time and compile time, GRAPH_MODE against PYNATIVE_MODE. Their numbers: suites/training.

    Expectation: in PyNative, Python hands over operator by operator, some hundreds a step, so that a small model's step
    takes at least three times as long. The graph is compiled in the first step, and has that back within some steps.
    """
    graph, pynative = trainer.run(SHORT), trainer.run(SHORT.replace(mode="pynative"))
    ratio = graph.typical_step_time / pynative.typical_step_time
    assert ratio < 1 / 3
    assert graph["compile_time"] > graph.typical_step_time
    gate.check(
        graph, only=["compile_time"], ratios={"step_time_ratio": ratio}, policy={"step_time_ratio": {"relative": 3.0}}
    )
