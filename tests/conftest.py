"""What the tests of the harness share."""

import os

import pytest
from hypothesis import settings

settings.register_profile("fast", max_examples=60, deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: takes minutes; only run where -m names it")


def pytest_collection_modifyitems(config, items):
    if "nightly" in config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: pytest tests -m nightly"))
