"""A script that uses AutoDeploy is held at AutoDeploy's own stages, and the transform at fault is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import paths
from conformance.backends.autodeploy.script_rungs import AutoDeployAdapter
from conformance.stage import Stage
from conformance.triage.hold import Hold
from conformance.triage.ladder import climb
from conformance.triage.runs import Runs
from conformance.triage.script_triage import compiler_of
from conformance.triage.subject import script

SCRIPT = Path(__file__).parents[1] / "triage" / "scripts_third" / "other" / "autodeploy_u01_bias.py"


@pytest.fixture
def runs(harness: Any) -> Iterator[Runs]:
    held = Runs(AutoDeployAdapter().hold, limit=100.0)
    yield held
    held.close()


@pytest.mark.own_process
def test_the_transform_at_fault_is_named(runs: Runs) -> None:
    assert compiler_of(SCRIPT.read_text()) == "autodeploy"
    adapter, subject = AutoDeployAdapter(), script(SCRIPT, ())
    given = runs(subject, Hold())[0]
    assert given.code == 1 and "AssertionError" in given.error, given.output
    found = climb(runs, subject, adapter.rungs, given)
    stage, _ = adapter.stage(runs, subject, found)
    assert stage is Stage.POSTGRAD, found.lines()
    culprit = adapter.culprit(runs, subject, found, stage)
    assert (culprit.what, culprit.name) == ("transform", "match_eager_attention")


@pytest.mark.slow
def test_from_a_script_to_its_repro(harness: Any, tmp_path: Path) -> None:
    """The whole command. The repro runs without this project, from a checkout that nobody built."""
    env = {**os.environ, "PYTHONPATH": paths.import_path(), "CONFORMANCE_HOME": str(tmp_path / "home")}
    words = [sys.executable, "-m", "conformance.cli", "triage", str(SCRIPT), "--json", "-o", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert said["verified"] == "alone it exits 1; cured it exits 0"
    text = Path(said["repro"]).read_text()
    assert "conformance" not in text and "match_eager_attention" in text
