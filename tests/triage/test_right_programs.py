"""No alarm on right programs: scripts of every kind, and small models of transformers as an object and in a script."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import model_programs
import pytest

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE / "scripts_right").glob("*.py"))


def triaged(subject: str, tmp_path: Path) -> dict[str, Any]:
    """What the command says, in an interpreter of its own."""
    env = {**os.environ, "CONFORMANCE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(HERE.parents[1])}
    words = [sys.executable, "-m", "conformance.cli", "triage", subject, "--json", "-o", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.stdout, done.stderr
    return {**json.loads(done.stdout), "returned": done.returncode}


def test_there_are_twenty() -> None:
    assert len(SCRIPTS) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_right_script_is_no_alarm(script: Path, tmp_path: Path) -> None:
    said = triaged(str(script), tmp_path)
    assert (said["verdict"], said["returned"]) == ("right", 0), said


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize("program", model_programs.NAMES)
def test_a_model_of_transformers_is_no_alarm(program: str, tmp_path: Path) -> None:
    said = triaged(model_programs.write(program, tmp_path), tmp_path)
    assert (said["verdict"], said["returned"]) == ("right", 0), said
