"""The fuzz lane in pytest: a test a micrograph, asked for by `-m fuzz` and never run otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance import backends
from conformance.backends.base import Jit
from conformance.opt_in import deselect

# Where nobody says which: what is fused, what is reduced, what is written to; and a number among the inputs for the guards.
FEW = ("pointwise.chain", "norm.rmsnorm", "mutation.only_effect")
FEW_GUARDED = ("pointwise.chain", "dynamic.shape_arithmetic", "pointwise.scalar_argument")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fuzz: draws shapes, strides, dtypes and values; opt-in")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`fuzzed`: a micrograph on a backend and target. `guarded`: those whose calls Dynamo guards. `compiling`: only the latter two."""
    for name in {"fuzzed", "guarded", "compiling"} & {*metafunc.fixturenames}:
        metafunc.parametrize(name, list(PARAMS[name](metafunc.config)) if asked(metafunc.config) else [])


def _fuzzed(config: pytest.Config, few: tuple[str, ...] = FEW) -> Iterator[Any]:
    from conformance.plugin import SUITE

    suite = config.stash[SUITE]
    own = config.option.micrograph or not {*few} <= {*suite.session.micrographs}
    for case in suite.cases:
        backend, target, name = case.backend, case.target, case.micrograph
        found = backends.get(backend)
        if (own or name in few) and target in found.targets() and len(found.unavailable(_target(target))) < 7:
            yield pytest.param(
                (backend, target, suite.session.micrographs[name]),
                id=f"{backend}-{target}-{name}",
                marks=getattr(pytest.mark, backend),
            )


def _guarded(config: pytest.Config) -> Iterator[Any]:
    from conformance.fuzz.guard_search import playable

    for param in _fuzzed(config, FEW_GUARDED):
        backend, target, micrograph = param.values[0]
        if isinstance(backends.get(backend), Jit) and not _target(target).headless and playable(micrograph):
            yield param


def _compiling(config: pytest.Config) -> Iterator[Any]:
    for backend, target in dict.fromkeys(param.values[0][:2] for param in _fuzzed(config)):
        yield pytest.param((backend, target), id=f"{backend}-{target}", marks=getattr(pytest.mark, backend))


PARAMS: dict[str, Callable[[pytest.Config], Iterator[Any]]] = {
    "fuzzed": _fuzzed,
    "guarded": _guarded,
    "compiling": _compiling,
}


def _target(name: str) -> Any:
    from conformance.target import Target

    return Target.parse(name)


def asked(config: pytest.Config) -> bool:
    return "fuzz" in (config.option.markexpr or "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without `-m fuzz` there is nothing to run, and nothing to report as skipped."""
    if not asked(config):
        deselect(config, items, "fuzz")
