"""Plans as tables for the terminal, and as JSON."""

import dataclasses
from typing import Any

from rich.table import Table

from harness.plan import GIB, Plan, describe

CAVEAT = "a model, not a measurement: arithmetic on the sizes and the profile's figures (docs/planning.md)"


def memory_table(plan: Plan) -> Table:
    """What a device of each stage holds."""
    table = Table(title=f"memory of a device, GiB of {plan.profile.memory:g}", box=None, title_justify="left")
    names = ("parameters", "optimizer", "gradients", "activations", "update", "total")
    for name in ("stage", *names):
        table.add_column(name, justify="right")
    for stage, needs in enumerate(plan.stages):
        table.add_row(str(stage), *(f"{getattr(needs, name) / GIB:.3g}" for name in names))
    return table


def time_table(plan: Plan) -> Table:
    """Where the time of a step goes."""
    cost = plan.cost
    table = Table(title=f"a step on {plan.profile.name}", box=None, show_header=False, title_justify="left")
    rows = {
        "computing, slowest stage": f"{cost.compute:.3g} s",
        "pipeline bubble": f"{cost.bubble_ratio:.1%}",
        "exposed communication": f"{cost.exposed:.3g} s, {cost.communication_share:.0%} of the step",
        "step time": f"{cost.step_time:.3g} s",
        "throughput": f"{cost.throughput:,.0f} token/s",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def traffic_table(plan: Plan) -> Table:
    """What the busiest device sends in a step."""
    table = Table("why", "operator", box=None)
    for name in ("calls", "bytes a call", "seconds in all"):
        table.add_column(name, justify="right")
    for each in plan.cost.traffic:
        table.add_row(each.purpose, each.kind, f"{each.calls:,}", f"{each.bytes:,.0f}", f"{each.seconds:.3g}")
    return table


def search_table(plans: list[Plan], most: int) -> Table:
    """The fastest layouts."""
    table = Table("layout", box=None)
    for name in ("GiB a device", "bubble", "communication", "step time", "token/s"):
        table.add_column(name, justify="right")
    for plan in plans[:most]:
        cost = plan.cost
        table.add_row(
            describe(plan.scenario),
            f"{plan.needed:.1f}",
            f"{cost.bubble_ratio:.1%}",
            f"{cost.communication_share:.0%}",
            f"{cost.step_time:.3g} s",
            f"{cost.throughput:,.0f}",
        )
    return table


def as_json(plans: list[Plan], most: int) -> dict[str, Any]:
    """All figures, in bytes and seconds."""
    return {"kind": "model, not measurement", "plans": [_content(plan) for plan in plans[:most]]}


def _content(plan: Plan) -> dict[str, Any]:
    cost = plan.cost
    return {
        "scenario": plan.scenario.to_dict(),
        "profile": plan.profile.model_dump(),
        "memory": [{**dataclasses.asdict(stage), "total": stage.total} for stage in plan.stages],
        "compute": cost.compute,
        "bubble_ratio": cost.bubble_ratio,
        "traffic": [dataclasses.asdict(each) for each in cost.traffic],
        "exposed_communication": cost.exposed,
        "communication_share": cost.communication_share,
        "step_time": cost.step_time,
        "throughput": cost.throughput,
    }
