"""Accounts for every communication operator of a compiled graph by the layout that asks for it. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.audit.graph import Graph, Operator
from harness.layout import Layout

REASONS = {
    "gradients": "gradients summed over replicas, and of norms over shards",
    "optimizer sharding": "weights gathered and gradients scattered, since each rank keeps its share",
    "tensor parallel": "sums over the shards of a layer",
    "loss": "loss and token sums over replicas",
    "global norm": "the gradient norm over all ranks",
    "pipeline": "activations and their gradients between stages",
    "redistribution": "a tensor cut otherwise than the next operator needs it",
    "unexplained": "nothing in the layout asks for it",
}
"""Every reason, and what it means."""


@dataclass(frozen=True)
class Row:
    """Operators that are alike."""

    reason: str
    kind: str
    direction: str
    """``forward`` or ``backward``."""

    ranks: tuple[int, ...]
    size: int
    """Bytes of one call."""

    fusion: int
    operators: int
    calls: int
    """Of all of them, in a step."""


def reason(operator: Operator, layout: Layout, rank: int) -> str:
    """Why an operator is there: one of ``REASONS``."""
    name = operator.name.lower()
    if operator.kind in ("Send", "Receive"):
        return "pipeline" if layout.pp > 1 else "unexplained"
    if "globalnorm" in name:
        return "global norm"
    if "parallel_optimizer" in name or "grad_accumulation_shard" in name:
        return "optimizer sharding" if layout.optimizer_sharding else "unexplained"
    if "redistribution" in name or operator.kind.startswith(("AlltoAll", "NeighborExchange")):
        return "redistribution"
    if "mirror" in name:
        return "gradients" if layout.dp * layout.tp > 1 else "unexplained"
    if operator.kind != "AllReduce":
        return "redistribution"
    if operator.ranks in _groups(layout, "tp", rank) and layout.tp > 1:
        return "tensor parallel"
    if operator.ranks in _groups(layout, "dp", rank) and layout.dp > 1 and operator.size <= 4:
        return "loss"
    return "unexplained"


def _groups(layout: Layout, kind: str, rank: int) -> list[tuple[int, ...]]:
    return [tuple(group) for group in layout.groups(kind) if rank in group]


def rows(graph: Graph, layout: Layout, rank: int) -> list[Row]:
    """The operators of a rank, alike ones together, by reason."""
    counted: Counter[tuple[str, str, str, tuple[int, ...], int, int, int]] = Counter()
    for o in graph.operators:
        direction = "backward" if o.is_backward else "forward"
        counted[reason(o, layout, rank), o.kind, direction, o.ranks, o.size, o.fusion, o.calls] += 1
    order = list(REASONS)
    found = [
        Row(why, kind, direction, ranks, size, fusion, number, number * calls)
        for (why, kind, direction, ranks, size, fusion, calls), number in counted.items()
    ]
    return sorted(found, key=lambda row: (order.index(row.reason), row.kind, row.direction, -row.size, row.ranks))


METRICS = {
    "AllReduce": "graph_all_reduce_calls",
    "AllGather": "graph_all_gather_calls",
    "ReduceScatter": "graph_reduce_scatter_calls",
    "AlltoAll": "graph_all_to_all_calls",
    "Send": "graph_send_calls",
    "Receive": "graph_receive_calls",
}
"""Kind of operator → the metric that counts its calls."""


def metrics(graphs: Sequence[Graph], layout: Layout, ranks: Sequence[int]) -> dict[str, float]:
    """What is gated: calls of a step by kind, bytes, and operators that nothing explains, of the busiest rank.

    Args:
        graphs: one a compiled rank.
        layout: the scenario's.
        ranks: their numbers.
    """
    found = {
        metric: float(max(sum(o.calls for o in graph.operators if o.kind.startswith(kind)) for graph in graphs))
        for kind, metric in METRICS.items()
    }
    pairs = list(zip(graphs, ranks, strict=True))
    for why in ("redistribution", "unexplained"):
        counts = [sum(reason(o, layout, rank) == why for o in graph.operators) for graph, rank in pairs]
        found[f"graph_{why}_operators"] = float(max(counts))
    volumes = [sum(o.calls * o.size for o in graph.operators if o.kind != "Receive") for graph in graphs]
    found["graph_communication_volume"] = max(volumes) / 2**20
    return found
