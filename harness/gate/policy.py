"""How far a metric may move: defaults, the project's configuration, and a test's own word."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness.errors import PolicyError
from harness.metrics.registry import METRICS, Metric, Scope, ratio

Lane = Literal["gating", "advisory"]


@dataclass(frozen=True)
class Policy:
    """Tolerance of one metric. A value at most max(relative · |baseline|, absolute) away is unchanged."""

    relative: float
    """Share of the baseline."""

    absolute: float = 0.0
    """In the metric's unit."""

    deviating_steps: int = 0
    """How many steps of a curve may leave the tolerance; a whole number, so that nothing is rounded."""

    lane: Lane = "gating"
    """``gating`` fails the test; ``advisory`` only shows."""

    exact: bool = False
    """Whether a number must be the same to the last bit on the kind of machine that it was approved on; elsewhere the
    tolerances hold."""

    spread: float = 1.5
    """Interquartile range of the steady steps, as a share of their median, above which their mean says nothing. Ranks
    that wait for each other on shared cores were seen to reach 0.8."""

    shared: float = 0.1
    """Share of the machine's cores that other processes may use while a time is measured."""

    missing_steps: int = 0
    """How many steps of a training of others may be in its log or in the baseline alone."""

    def __post_init__(self) -> None:
        for name in ("relative", "absolute", "spread", "shared"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                raise PolicyError(f"policy {name}={value!r} must be a finite number of at least 0")
        for name in ("deviating_steps", "missing_steps"):
            steps = getattr(self, name)
            if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
                raise PolicyError(f"policy {name}={steps!r} must be a whole number of at least 0")
        if not isinstance(self.exact, bool):
            raise PolicyError(f"policy exact={self.exact!r} must be true or false")
        if self.lane not in get_args(Lane):
            raise PolicyError(f"policy lane={self.lane!r} is unknown; choose gating or advisory")


Overrides = Mapping[str, Mapping[str, Any]]
"""Metric or scope name → some fields of its policy."""


def find_metric(name: str) -> Metric:
    """A metric of the registry, or a ratio of one.

    Raises:
        PolicyError: there is no such metric.
    """
    if name in METRICS:
        return METRICS[name]
    base = name.removesuffix("_ratio")
    if base != name and base in METRICS:
        return ratio(base)
    near = difflib.get_close_matches(name, METRICS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"metrics are {', '.join(METRICS)}"
    raise PolicyError(f"metric {name!r} is unknown; {hint}")


def resolve(metric: Metric, *layers: Overrides) -> Policy:
    """The policy of a metric.

    Args:
        metric: gives the defaults.
        layers: overrides, weakest first; inside a layer the metric's own entry is stronger than its scope's.

    Raises:
        PolicyError: a field is unknown or its value can't work.
    """
    fields: dict[str, Any] = {
        "relative": metric.relative,
        "absolute": metric.absolute,
        "deviating_steps": metric.deviating_steps,
    }
    for layer in layers:
        for key in (metric.scope, metric.name):
            fields.update(layer.get(key, {}))
    try:
        return Policy(**fields)
    except TypeError:
        known = Policy.__dataclass_fields__
        unknown = next(name for name in fields if name not in known)
        raise PolicyError(
            f"policy of {metric.name!r} has no field {unknown!r}; fields are {', '.join(known)}"
        ) from None


def check_overrides(overrides: Overrides) -> None:
    """Refuses configuration that names no metric or scope, or that no policy could be made of.

    Raises:
        PolicyError: names the entry.
    """
    for name, fields in overrides.items():
        if not isinstance(fields, Mapping):
            raise PolicyError(f"policy of {name!r} must be a table of fields, not {fields!r}")
        if name in get_args(Scope):
            resolve(next(m for m in (*METRICS.values(), ratio("step_time")) if m.scope == name), {name: fields})
        else:
            resolve(find_metric(name), {name: fields})
