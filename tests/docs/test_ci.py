"""CI templates: their scripts are shell, and what they call exists."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from harness.cli import app

CI = Path(__file__).parents[2] / "docs" / "ci"
FILES = ("github-actions.yml", "gitlab-ci.yml", "Jenkinsfile")


def strings(content):
    """All texts of a YAML document that may be scripts."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name in ("run", "script", "before_script"):
                yield from ([value] if isinstance(value, str) else value)
            else:
                yield from strings(value)
    elif isinstance(content, list):
        for value in content:
            yield from strings(value)


def scripts(name):
    text = (CI / name).read_text()
    return (
        re.findall(r"sh '''(.*?)'''", text, re.DOTALL) if name == "Jenkinsfile" else list(strings(yaml.safe_load(text)))
    )


def calls(name, program):
    """Arguments of every call of a program."""
    for script in scripts(name):
        for line in script.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            for index, word in enumerate(words):
                if word == f".venv/bin/{program}":
                    yield words[index + 1 :]


@pytest.mark.parametrize("name", FILES)
def test_scripts_are_shell(name):
    assert scripts(name)
    for script in scripts(name):
        found = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr


@pytest.fixture(scope="module")
def options():
    """Of pytest with the plugin."""
    text = subprocess.check_output([sys.executable, "-m", "pytest", "--help"], text=True, cwd=CI.parents[1])
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)) | {"-m", "--junitxml"}


@pytest.mark.parametrize("name", FILES)
def test_every_option_of_pytest_is_known(name, options):
    found = [word.partition("=")[0] for words in calls(name, "pytest") for word in words if word.startswith("-")]
    assert found
    assert set(found) <= options


@pytest.mark.parametrize("name", FILES[:2])
def test_every_command_of_the_harness_is_known(name):
    found = list(calls(name, "harness"))
    assert found
    for words in found:
        command = get_command(app)
        while hasattr(command, "commands"):
            assert words[0] in command.commands, words
            command, words = command.commands[words[0]], words[1:]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


@pytest.mark.parametrize("name", FILES)
def test_the_gate_measures_confirms_and_minds_baselines(name):
    text = (CI / name).read_text()
    gates = [words for words in calls(name, "pytest") if any(w.startswith("--confirm-against=") for w in words)]
    assert gates
    assert all("--require-hardware" in words for words in gates)
    assert 'git diff --quiet "$base" HEAD -- baselines || suites=suites' in text


def test_what_users_type_reaches_no_script_but_by_the_environment():
    """An expression of GitHub's inside a script is pasted into it, whatever it holds."""
    assert not any("${{" in script for script in scripts("github-actions.yml"))
