"""What a layout would need and cost, by arithmetic alone: a model, not a measurement. Pure."""

from harness.plan.cost import Cost, Traffic, cost, ring_time
from harness.plan.memory import Memory, memory, pool_peak, stage_parameters
from harness.plan.profile import Profile
from harness.plan.search import GIB, Plan, describe, plan, search

__all__ = [
    "GIB",
    "Cost",
    "Memory",
    "Plan",
    "Profile",
    "Traffic",
    "cost",
    "describe",
    "memory",
    "plan",
    "pool_peak",
    "ring_time",
    "search",
    "stage_parameters",
]
