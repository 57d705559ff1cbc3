"""mindspore-harness: validation and regression suites for large-model training on MindSpore."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.checkpoints.policy import Checkpoints
    from harness.guard import Guard
    from harness.layout import Layout
    from harness.marks import cards, hardware, smoke, untimed
    from harness.scenario import Scenario

__all__ = ["Checkpoints", "Guard", "Layout", "Scenario", "cards", "hardware", "smoke", "untimed"]
__version__ = "0.1.0"

_HOMES = {
    "Checkpoints": "checkpoints.policy",
    "Guard": "guard",
    "Layout": "layout",
    "Scenario": "scenario",
    "cards": "marks",
    "hardware": "marks",
    "smoke": "marks",
    "untimed": "marks",
}


def __getattr__(name: str) -> object:
    """Loads a public name from its module on first use, so that a rank process never imports pytest."""
    if name not in _HOMES:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"harness.{_HOMES[name]}"), name)
