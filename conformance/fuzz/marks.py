"""The fuzz lane in pytest: a test a micrograph, asked for by `-m fuzz` and never run otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from conformance import backends


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fuzz: draws shapes, strides, dtypes and values; opt-in")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fuzzed" not in metafunc.fixturenames:
        return
    from conformance.plugin import SUITE

    suite = metafunc.config.stash[SUITE]
    cases = list(suite.cases()) if asked(metafunc.config) else []
    able = [(b, t, m) for b, t, m in cases if t in backends.get(b).targets() and len(backends.get(b).unavailable(_target(t))) < 7]
    params = [pytest.param((b, t, suite.micrographs[m]), id=f"{b}-{t}-{m}", marks=getattr(pytest.mark, b)) for b, t, m in able]
    metafunc.parametrize("fuzzed", params)


def _target(name: str) -> Any:
    from conformance.target import Target

    return Target.parse(name)


def asked(config: pytest.Config) -> bool:
    return "fuzz" in (config.option.markexpr or "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without `-m fuzz` there is nothing to run, and nothing to report as skipped."""
    if not asked(config):
        gone = [item for item in items if item.get_closest_marker("fuzz")]
        if gone:
            config.hook.pytest_deselected(items=gone)
            items[:] = [item for item in items if item not in gone]
