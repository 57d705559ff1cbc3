"""Plugins that must be named at the top: pytester starts sessions of their own in the harness's tests."""

pytest_plugins = ["pytester"]
