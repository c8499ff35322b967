"""The diff of two real records, of one torch without and with a change: the change is the one cause, at its stage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.report.diff import compare, sides
from conformance.report.load import load
from conformance.seeded import changes, movement
from conformance.stage import STAGES

pytestmark = pytest.mark.slow  # a run of the suite for each of three changes


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The records of three changes and of none, made in a process of its own, and what the command said."""
    folder = tmp_path_factory.mktemp("moved")
    command = [sys.executable, "-m", "conformance.cli", "selftest", "--moved", "--ci", "--record", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, env={**os.environ, "COLUMNS": "200"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


@pytest.mark.parametrize("name, stage", list(zip(movement.CI, ("capture", "postgrad", "cache"), strict=True)))
def test_a_change_of_a_stage_is_the_single_first_cause(recorded: tuple[Path, str], name: str, stage: str) -> None:
    folder, said = recorded
    old, new = (load([folder / f"{one}.jsonl"])[0] for one in (movement.UNCHANGED, name))
    before, after, _ = sides(old, new)
    found = compare(before, after)
    assert [cause.stage for cause in found.causes if cause.rank != "bookkeeping"] == [stage]
    assert found.compared == 7
    assert any(name in line and f"✓ {stage}" in line for line in said.splitlines())


def test_a_record_and_itself_differ_in_nothing(recorded: tuple[Path, str]) -> None:
    (run,) = load([recorded[0] / f"{movement.UNCHANGED}.jsonl"])
    before, after, _ = sides(run, run)
    assert compare(before, after).causes == []


def test_every_stage_has_a_change_and_a_fault() -> None:
    assert {one.stage for one in changes.CHANGES.values()} == set(STAGES)
    assert {one.stage for one in movement.changes() if one.kinds} == set(STAGES)
