from datetime import date

import pytest

from harness.configuration import Configuration, read
from harness.errors import PolicyError


def test_a_project_without_settings_has_the_defaults(tmp_path):
    assert read(tmp_path) == Configuration()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert read(tmp_path) == Configuration()


def test_settings_are_read(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.harness.policy.machine]\nlane = 'advisory'\n"
        "[[tool.harness.expected-failures]]\n"
        "test = 'test_x'\nmetric = 'loss'\nreason = 'why'\nuntil = 2027-06-30\n"
    )
    found = read(tmp_path)
    assert found.baselines == "baselines"
    assert found.policy == {"machine": {"lane": "advisory"}}
    assert found.expected[0].until == date(2027, 6, 30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "pyproject.toml can't be read"),
        ("[tool.harness.policy.losss]\nrelative = 1\n", r"\[tool.harness.policy\] in pyproject.toml: metric 'losss'"),
        ("[tool.harness]\nbaseline = 'x'\n", r"has no setting 'baseline'; did you mean 'baselines'\?"),
        ("[tool.harness]\nbaselines = '../x'\n", "must name a folder below the project's"),
        ("[tool.harness]\nbaselines = 3\n", "baselines=3 in pyproject.toml must name a folder"),
        (
            "[[tool.harness.expected-failures]]\ntest = 'x'\n",
            r"\[tool.harness.expected-failures\] in pyproject.toml: an",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused(tmp_path, text, message):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(PolicyError, match=message):
        read(tmp_path)
