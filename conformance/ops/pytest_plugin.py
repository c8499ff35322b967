"""The operators in pytest: a test an operator, asked for by `-m ops` and never run otherwise."""

from __future__ import annotations

import pytest

from conformance.opt_in import deselect

MARKER = "ops"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}: every operator in every dtype and layout; opt-in")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`swept`: the operators that Inductor is swept with, where they are asked for."""
    if "swept" in metafunc.fixturenames:
        from conformance.ops.commands import sweep_of

        names = [one.name for one in sweep_of("inductor", "cpu").operators] if asked(metafunc.config) else []
        metafunc.parametrize("swept", names)


def asked(config: pytest.Config) -> bool:
    return MARKER in (config.option.markexpr or "").replace("(", " ").split()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without `-m ops` there is nothing to run, and nothing to report as skipped."""
    if not asked(config):
        deselect(config, items, MARKER)
