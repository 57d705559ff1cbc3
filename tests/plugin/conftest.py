"""Fixtures of the plugin's tests."""

import pytest

from tests.plugin.sessions import ROOT


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
