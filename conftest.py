"""What must be known at the top: a plugin for tests that start sessions of their own, and what is left to the night."""

import pytest

pytest_plugins = ["pytester"]


def pytest_configure(config):
    """Names the mark."""
    config.addinivalue_line("markers", "nightly: takes minutes; only run where -m names it")


def pytest_collection_modifyitems(config, items):
    """Skips what takes minutes, unless it is asked for."""
    if "nightly" in config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.skip(reason="takes minutes; run it with -m nightly"))
