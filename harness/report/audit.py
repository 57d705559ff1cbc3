"""What a compiled layout communicates, as tables for the terminal."""

from rich.markup import escape
from rich.table import Table

from harness.audit.explain import REASONS, rows
from harness.audit.graph import Graph
from harness.layout import Layout

SHOWN_RANKS = 8
"""Longer groups are shown by their first ranks."""


def communication_table(graph: Graph, layout: Layout, rank: int) -> Table:
    """One row for all operators that are alike."""
    stage, replica, shard = layout.position(rank)
    table = Table(title=f"rank {rank}: stage {stage}, replica {replica}, shard {shard}", box=None, title_justify="left")
    for name in ("why", "operator", "direction", "ranks", "bytes", "fusion", "operators", "calls a step"):
        table.add_column(name, justify="right" if name in ("bytes", "fusion", "operators", "calls a step") else "left")
    for row in rows(graph, layout, rank):
        style = "red" if row.reason == "unexplained" else ""
        numbers = (f"{row.size:,}", str(row.fusion), str(row.operators), str(row.calls))
        table.add_row(row.reason, row.kind, row.direction, _ranks(row.ranks), *numbers, style=style)
    return table


def parameter_table(graph: Graph) -> Table:
    """This rank's shape of each parameter."""
    table = Table("parameter", "shape on this rank", box=None)
    for name, shape in graph.parameters.items():
        table.add_row(escape(name), " × ".join(str(size) for size in shape) or "1")
    return table


def legend(graphs: dict[int, Graph], layout: Layout) -> list[str]:
    """What the reasons that were given mean."""
    given = {row.reason for rank, graph in graphs.items() for row in rows(graph, layout, rank)}
    return [f"{name}: {meaning}" for name, meaning in REASONS.items() if name in given]


def _ranks(ranks: tuple[int, ...]) -> str:
    shown = ", ".join(str(rank) for rank in ranks[:SHOWN_RANKS])
    return f"{shown}, … ({len(ranks)})" if len(ranks) > SHOWN_RANKS else shown
