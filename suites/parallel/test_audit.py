"""What MindSpore's compiler puts into the graph of a layout, read without a device."""

import pytest

from fixtures.scenarios import GRAPH, SEED_13B
from harness import Layout, hardware

COUNTS = [
    "graph_all_reduce_calls",
    "graph_all_gather_calls",
    "graph_reduce_scatter_calls",
    "graph_all_to_all_calls",
    "graph_send_calls",
    "graph_receive_calls",
    "graph_communication_volume",
    "graph_redistribution_operators",
    "graph_unexplained_operators",
]

PARAMETERS = 3 + 2 * 9
"""Of nano: embedding, last norm, head; per block seven matrices and two norms."""

EXPECTED = {
    "dp2": (GRAPH.replace(layout=Layout(dp=2)), {"graph_all_reduce_calls": PARAMETERS + 1 + 1}),
    "tp2": (GRAPH.replace(layout=Layout(tp=2)), {"graph_all_reduce_calls": 2 * (4 + 1) + 3 + 2 + 5 + 1}),
    "dp2-sharded": (
        GRAPH.replace(layout=Layout(dp=2, optimizer_sharding=True)),
        {"graph_all_gather_calls": PARAMETERS, "graph_reduce_scatter_calls": PARAMETERS},
    ),
    "pp2": (GRAPH.replace(layout=Layout(pp=2), micro_batches=4), {"graph_send_calls": 4, "graph_receive_calls": 4}),
    "dp2-tp2-pp2-sharded": (
        GRAPH.replace(layout=Layout(dp=2, tp=2, pp=2, optimizer_sharding=True), micro_batches=4),
        {"graph_send_calls": 4, "graph_receive_calls": 4},
    ),
    "pp2-interleaved": (
        GRAPH.replace(
            model="tiny", layout=Layout(pp=2), micro_batches=4, pipeline_schedule="interleaved", chunks=2, sequence=32
        ),
        {"graph_send_calls": 12, "graph_receive_calls": 12},
    ),
    "searched": (GRAPH.replace(layout=Layout(dp=2, tp=2), engine="sharding_propagation"), {}),
}


@pytest.mark.frontend
@hardware("cpu")
@pytest.mark.parametrize("layout", EXPECTED)
def test_the_compiled_graph_communicates_as_the_layout_says(trainer, gate, layout):
    """Feature: communication operators of the last graph of MindSpore's front end, compiled for GPU.

    Expectation: data parallelism sums each parameter's gradient, the loss, and the norm. Tensor parallelism sums two
    outputs a block and the embedding's forward, as many gradients backward, three and two vectors of the loss, and the
    gradients of the five norms. Sharded, each parameter is gathered and its gradient scattered. A pipeline sends each
    micro-batch once over each boundary in each direction; with two chunks a stage, over three boundaries.
    Nothing is there that the layout does not ask for, and no tensor has to be cut anew.
    """
    scenario, expected = EXPECTED[layout]
    run = trainer.audit(scenario)
    assert {name: run[name] for name in expected} == expected
    assert run["graph_unexplained_operators"] == 0
    assert run["graph_redistribution_operators"] == 0
    gate.check(run, only=COUNTS)


@pytest.mark.nightly
@pytest.mark.frontend
@hardware("cpu")
def test_13b_on_32_devices_compiles(trainer, gate):
    """Feature: 13 billion parameters, two replicas of four stages of four shards, sharded optimizer, recomputation.

    Expectation: MindSpore's front end takes it, and every operator is accounted for. Minutes, and 7 GB of memory.
    """
    run = trainer.audit(SEED_13B)
    assert run["graph_send_calls"] == 2 * SEED_13B.micro_batches
    assert run["graph_unexplained_operators"] == 0
    gate.check(run, only=COUNTS)
