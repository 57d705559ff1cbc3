"""Fixtures of the plugin's tests."""

import importlib
import pkgutil

import pytest

import harness
from tests.plugin.sessions import ROOT


@pytest.fixture(scope="session", autouse=True)
def imported():
    """All modules that sessions import late: pytester undoes the imports of a session in this process."""
    for found in pkgutil.walk_packages(harness.__path__, "harness."):
        if not found.name.startswith("harness.trainer") and not found.name.endswith("__main__"):
            importlib.import_module(found.name)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.fixture
def project(pytester):
    """A project with a suite, in a folder of its own."""
    pytester.makeini("[pytest]\n")
    pytester.mkdir("suites")
    return pytester
