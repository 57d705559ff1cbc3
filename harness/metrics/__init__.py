"""What is measured: the registry of metrics, and the pure functions that compute them, one module a family."""

from harness.errors import Undefined
from harness.metrics.registry import METRICS, Metric

__all__ = ["METRICS", "Metric", "Undefined"]
