"""Hardware profiles from TOML."""

import pytest

from harness.errors import PlanError
from harness.plan import Profile
from harness.plan.profile import PROFILES

GOOD = {
    "name": '"mine"',
    "flops": "1e14",
    "memory": "64",
    "node_devices": "8",
    "node_bandwidth": "1e11",
    "network_bandwidth": "1e10",
    "latency": "1e-5",
}


def write(path, **changes):
    figures = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    path.write_text("".join(f"{name} = {value}\n" for name, value in figures.items()))
    return path


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.toml")), ids=lambda path: path.stem)
def test_those_that_come_along_can_be_read(path):
    assert Profile.read(path.stem).flops > 1e12


def test_a_profile_of_ones_own(tmp_path):
    assert Profile.read(write(tmp_path / "mine.toml")).memory == 64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flops": None}, "lacks flops; figures are name, flops"),
        ({"memory": "-1"}, r"memory: .* greater than 0 \(found -1\)"),
        ({"node_bandwidth": "0"}, "node_bandwidth: .* greater than 0"),
        ({"latency": "nan"}, "latency: .* finite"),
        ({"node_devices": "1.5"}, "node_devices: .* integer"),
        ({"flopz": "1"}, r"flopz: .*\(found 1\); figures are name, flops"),
        ({"flops": "]"}, "is no TOML"),
    ],
)
def test_a_bad_figure_is_named(tmp_path, changes, message):
    with pytest.raises(PlanError, match=message) as error:
        Profile.read(write(tmp_path / "bad.toml", **changes))
    assert "bad.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_no_such_profile_lists_those_that_there_are():
    with pytest.raises(PlanError, match=r"can't be read: No such file.*one of a100-80g, ascend-910b"):
        Profile.read("h999")
