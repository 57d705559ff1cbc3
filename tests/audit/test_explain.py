import pytest

from harness import Layout
from harness.audit.explain import REASONS, metrics, reason, rows
from harness.audit.graph import Graph, Operator

ALL = Layout(dp=2, tp=2, pp=2, optimizer_sharding=True)


def operator(kind="AllReduce", name="forward_op_1", ranks=(0, 1), size=64, calls=1, **changes):
    fields = {"fusion": 0, "reduction": "sum", "parameter": "", "is_backward": False, **changes}
    return Operator(kind=kind, name=name, ranks=ranks, size=size, calls=calls, **fields)


@pytest.mark.parametrize(
    ("found", "layout", "expected"),
    [
        (operator(), ALL, "tensor parallel"),
        (operator(), Layout(dp=2), "unexplained"),
        (operator(ranks=(0, 2), size=4), ALL, "loss"),
        (operator(ranks=(0, 2), size=400), ALL, "unexplained"),
        (operator(ranks=(0, 7), size=4), ALL, "unexplained"),
        (operator(name="grad_mirror_MirrorMicroStepOperator_1", ranks=(0, 2)), ALL, "gradients"),
        (operator(name="grad_mirror_Mirror_1"), Layout(), "unexplained"),
        (operator("AllGather", "parallel_optimizer_allgather_not_recompute", (0, 2)), ALL, "optimizer sharding"),
        (operator("AllGather", "parallel_optimizer_allgather", (0, 2)), Layout(dp=2), "unexplained"),
        (operator("AllReduce", "PARALLEL_GLOBALNORM_IN_STAGES", (0, 1, 2, 3), 4), ALL, "global norm"),
        (operator("Send", "x", (4,)), ALL, "pipeline"),
        (operator("Send", "x", (4,)), Layout(dp=2), "unexplained"),
        (operator("AlltoAll", "redistribution_op_1"), ALL, "redistribution"),
        (operator("AllGather", "other"), ALL, "redistribution"),
    ],
)
def test_each_part_of_a_layout_accounts_for_its_operators(found, layout, expected):
    assert reason(found, layout, rank=0) == expected
    assert expected in REASONS


def test_alike_operators_share_a_row():
    graph = Graph((operator(calls=4), operator(calls=4), operator(size=32), operator("Send", "s", (4,))), {})
    found = rows(graph, ALL, 0)
    assert [(row.reason, row.size, row.operators, row.calls) for row in found] == [
        ("tensor parallel", 64, 2, 8),
        ("tensor parallel", 32, 1, 1),
        ("pipeline", 64, 1, 1),
    ]


def test_metrics_are_those_of_the_busiest_rank():
    first = Graph((operator(calls=4), operator("Send", "s", (4,), size=2**20)), {})
    second = Graph((operator("AllReduce", "forward_op_2", (0, 7), size=2**19, calls=3), operator("Receive", "r")), {})
    found = metrics([first, second], ALL, [0, 4])
    assert found["graph_all_reduce_calls"] == 4
    assert found["graph_send_calls"] == found["graph_receive_calls"] == 1
    assert found["graph_all_to_all_calls"] == 0
    assert found["graph_communication_volume"] == 1.5
    assert found["graph_unexplained_operators"] == 1
    assert found["graph_redistribution_operators"] == 0
    moved = Graph((operator("AllGather", "other"), operator("AlltoAllV", "x"), operator("NeighborExchangeV2", "x")), {})
    found = metrics([moved], ALL, [0])
    assert (found["graph_redistribution_operators"], found["graph_all_to_all_calls"]) == (3, 1)
