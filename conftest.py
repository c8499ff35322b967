"""Loads the plugin from a plain checkout: where the package is installed, pytest finds it by itself."""

from importlib.metadata import entry_points

if not entry_points(group="pytest11", name="conformance"):
    pytest_plugins = ["conformance.plugin"]
