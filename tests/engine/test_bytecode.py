"""Bytecode is kept where nobody keeps it, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance import paths

SCRIPT = "from conformance import bytecode; bytecode.keep('heavy'); import heavy, sys; print(sys.pycache_prefix, sys.dont_write_bytecode)"


def said(tmp_path: Path, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    env |= {"PYTHONPATH": f"{tmp_path}{os.pathsep}{paths.import_path()}", "CONFORMANCE_HOME": str(tmp_path / "home")}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env | environment, capture_output=True, text=True, check=True, timeout=60
    )
    return run.stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "heavy").mkdir()
    (tmp_path / "heavy" / "__init__.py").write_text("x = 1\n")
    return tmp_path


def test_it_is_kept_where_python_is_told_to_write_none(package: Path) -> None:
    assert said(package, PYTHONDONTWRITEBYTECODE="1") == f"{package / 'home' / 'cache' / 'bytecode'} False"
    assert list((package / "home" / "cache" / "bytecode").rglob("__init__.*.pyc"))
    assert not list((package / "heavy").rglob("*.pyc")), "nothing is written beside the sources"


def test_nothing_changes_where_python_writes_it_or_it_is_there(package: Path) -> None:
    assert said(package) == "None False"
    assert list((package / "heavy").rglob("*.pyc"))
    assert said(package, PYTHONDONTWRITEBYTECODE="1") == "None True"


def test_a_folder_of_the_users_own_stays(package: Path) -> None:
    assert said(package, PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=str(package / "own")).endswith("own True")
