"""Decorators of suite tests: the hardware they run on and the devices they need."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from harness.devices import HARDWARE, check_hardware
from harness.errors import HardwareError

Test = TypeVar("Test", bound=Callable[..., Any])


def hardware(*names: str) -> Callable[[Test], Test]:
    """Makes one instance of a test for each named hardware, each carrying only that mark.

    Raises:
        HardwareError: a name is unknown, or none is given.
    """
    if not names:
        raise HardwareError("@hardware needs at least one of cpu, gpu, ascend")
    parameters = [pytest.param(name, marks=getattr(pytest.mark, check_hardware(name)), id=name) for name in names]

    def decorate(test: Test) -> Test:
        pytest.mark.usefixtures("hardware")(test)
        pytest.mark.parametrize("hardware", parameters, indirect=True)(test)
        return test

    return decorate


def cards(count: int) -> pytest.MarkDecorator:
    """States how many devices (on CPU: processes) a test needs; with fewer it is skipped."""
    if not isinstance(count, int) or count < 1:
        raise HardwareError(f"@cards needs a whole number of at least 1, not {count!r}")
    return pytest.mark.cards(count)


smoke = pytest.mark.smoke
"""One quick claim of each suite: all of them together say within two minutes whether anything works at all."""

untimed = pytest.mark.untimed
"""The test looks at no time: its runs have none, may run beside others, and may reuse graphs that others compiled."""


def is_untimed(item: pytest.Item) -> bool:
    """Return whether the trainings of a test have no times."""
    return item.get_closest_marker("untimed") is not None


def hardware_of(item: pytest.Item) -> str:
    """The hardware of an instance that @hardware made; empty for any other test."""
    name = getattr(getattr(item, "callspec", None), "params", {}).get("hardware")
    return str(name) if name in HARDWARE and "hardware" in getattr(item, "fixturenames", ()) else ""
