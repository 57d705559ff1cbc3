"""Reads what profilers leave behind. Pure but for the files that are read."""

from harness.profiling.operators import Operator, read_operators
from harness.profiling.steps import StepTrace, read_steps, shares

__all__ = ["Operator", "StepTrace", "read_operators", "read_steps", "shares"]
