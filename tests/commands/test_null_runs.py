import pytest

from harness import Scenario
from harness.commands.null_runs import TINY, find_scenario, null_runs
from harness.errors import ScenarioError


def test_the_scenario_is_ours_or_one_that_the_user_names(tmp_path):
    assert find_scenario(None, tmp_path) is TINY
    (tmp_path / "my_scenarios.py").write_text("from harness import Scenario\nMINE = Scenario(steps=7)\nOTHER = 3\n")
    assert find_scenario("my_scenarios:MINE", tmp_path) == Scenario(steps=7)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("nowhere_at_all:X", "can't be loaded: No module named"),
        ("harness.scenario:NOTHING", "can't be loaded"),
        ("harness.scenario:Scenario", "is a type; name a harness.Scenario"),
        ("", "can't be loaded"),
        (".x:Y", "can't be loaded"),
        ("harness", "can't be loaded"),
    ],
)
def test_what_names_no_scenario_is_refused(tmp_path, reference, message):
    with pytest.raises(ScenarioError, match=message):
        find_scenario(reference, tmp_path)


def test_too_few_runs_are_refused_before_any_is_trained(tmp_path):
    with pytest.raises(ScenarioError, match="give --runs 3 or more"):
        next(null_runs(TINY, "cpu", tmp_path, tmp_path / "runs", 2))
