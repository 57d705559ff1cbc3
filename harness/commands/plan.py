"""Plans what a scenario, or a search over layouts, would need and cost."""

from pathlib import Path

from harness.commands.null_runs import find_scenario
from harness.errors import PlanError
from harness.plan import Plan, Profile, describe, plan, search
from harness.scenario import Scenario


def plans(reference: str, profile: str, devices: int | None, root: Path) -> list[Plan]:
    """The plan of one scenario, or those of all layouts of so many devices that fit.

    Args:
        reference: ``package.module:NAME``.
        profile: name or file of a hardware profile.
        devices: how many to search layouts of; None plans the scenario as it is.
        root: of the project.

    Raises:
        PlanError: the profile can't be read, the model's sizes are unknown, or nothing fits.
        ScenarioError: there is no such scenario.
    """
    scenario, hardware = find_scenario(reference, root), Profile.read(profile)
    if devices is not None:
        return search(scenario, hardware, devices)
    found = plan(scenario, hardware)
    if found.missing:
        raise PlanError(f"{_lack(found)}; {_nearest(scenario, hardware)}")
    return [found]


def _lack(found: Plan) -> str:
    return (
        f"the layout does not fit: its fullest device needs {found.needed:.1f} GiB of {found.profile.memory:g} and "
        f"lacks {found.missing:.1f}"
    )


def _nearest(scenario: Scenario, hardware: Profile) -> str:
    try:
        fitting = search(scenario, hardware, scenario.layout.world_size)
    except PlanError as error:
        return str(error)
    return f"what fits on as many devices, fastest first: {describe(fitting[0].scenario)}"
