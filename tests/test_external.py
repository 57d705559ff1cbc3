import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Scenario
from harness.errors import ScenarioError
from harness.external import External
from harness.run import described
from harness.scenario import differences

texts = st.text(min_size=1, max_size=8)
externals = st.builds(
    External,
    command=st.lists(texts, min_size=1, max_size=4),
    output=st.sampled_from(["", "logs/*.log"]),
    ranks=st.integers(1, 64),
    tokens_per_step=st.none() | st.integers(1, 10**9),
)


@given(externals)
def test_it_survives_being_stored(external):
    assert described(external.to_dict()) == external
    assert described(external.to_dict()).hash == external.hash


@given(externals, externals)
def test_only_what_is_equal_has_one_hash(one, other):
    assert (one.hash == other.hash) == (one == other) == (not differences(one.to_dict(), other.to_dict()))


def test_a_command_is_made_of_a_scenario():
    command = Scenario.command(["python", "train.py"], ranks=2, tokens_per_step=8)
    assert (command.command, command.ranks, command.title) == (("python", "train.py"), 2, "python train.py")
    assert described(Scenario().to_dict()) == Scenario()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"command": "python train.py"}, "must be a list of texts like"),
        ({"command": ["python", 3]}, "must be a list of texts like"),
        ({"command": []}, "has a command, or, where it is finished, a name"),
        ({"command": ["a"], "name": "b"}, "has a command, or"),
        ({"command": ["a"], "output": "../x"}, "must lie below the run's folder; pass {folder}"),
        ({"command": ["a"], "output": "/x"}, "must lie below the run's folder"),
        ({"command": ["/usr/bin/python", "a.py"]}, "it would be another's on another machine"),
        ({"command": ["a", "--config=/home/me/x.yaml"]}, "holds '--config=/home/me/x.yaml'"),
        ({"command": ["a"], "output": "."}, "names no file"),
        ({"command": ["a"], "output": "logs/**.log"}, "names no file"),
        ({"command": ["a"], "output": None}, "output must be a text, not None"),
        ({"command": ["a"], "ranks": 0}, "ranks must be a whole number of at least 1, not 0"),
        ({"command": ["a"], "tokens_per_step": 1.5}, "tokens_per_step must be a whole number"),
    ],
)
def test_what_can_not_work_is_refused(fields, message):
    with pytest.raises(ScenarioError, match=message):
        External(**fields)


def test_a_field_of_another_version_is_named():
    with pytest.raises(ScenarioError, match="unexpected keyword argument 'steps'"):
        described({"kind": "external", "name": "a", "steps": 3})
