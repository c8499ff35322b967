"""The small project as a fixture, and a way to call the command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from small_project import Small


@pytest.fixture(scope="session")
def pycache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("PYTHONPYCACHEPREFIX")
    return Path(named) if named else tmp_path_factory.mktemp("pycache")


@pytest.fixture(autouse=True)
def environment_of_children(pycache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children share compiled modules: each test has a home of its own, and would compile pytest and torch anew. And the
    small project needs no plugins. Set for each test: what stays in the environment reaches the tests of other folders."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(pycache))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run `conformance upstream …`; give the exit code and all that was printed."""
    from conformance.cli import main

    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main(["upstream", *map(str, words)])
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out + printed.err

    return run
