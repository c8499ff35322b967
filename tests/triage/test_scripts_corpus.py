"""The corpus of scripts: every script has a truth that keeps the rules below; a few run in the installed torch."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path
from typing import Any

import pytest

from conformance.stage import Stage

HERE = Path(__file__).parent
FOLDER = HERE / "scripts"
TRUTH: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "truth.toml").read_text())
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))
RELEASES = {"2.11.0", "2.12.0", "2.13.0", "2.14.1", "2.15.0"}
FIELDS = ("report", "class", "half", "stage", "culprit", "established", "alive", "exits")
BELOW = ("eager", "aot_eager", "aot_eager_decomp_partition")

sys.path.insert(0, str(HERE))
import scripts_table  # noqa: E402


def test_every_script_has_a_truth_and_every_truth_a_script() -> None:
    assert sorted(TRUTH) == SCRIPTS
    assert len(SCRIPTS) >= 60


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_small_and_says_what_it_stands_for(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    said = ast.get_docstring(ast.parse(text))
    assert said and said.startswith((f"{TRUTH[name]['report']}: ", "No report known: "))
    assert len(text.splitlines()) <= 40
    assert "torch.compile" in text and "conformance" not in text


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_a_truth_keeps_the_rules(name: str) -> None:
    entry = TRUTH[name]
    assert set(FIELDS) == set(entry)
    assert entry["half"] == ("held" if zlib.crc32(name.encode()) % 2 else "develop")
    assert entry["stage"] in {stage.value for stage in Stage}
    assert name.startswith(f"{entry['class']}_")
    assert entry["established"]
    assert entry["alive"] and set(entry["alive"]) <= RELEASES
    assert entry["alive"] == scripts_table.alive(entry["exits"])


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_the_stage_agrees_with_the_backends_below(name: str) -> None:
    """eager fails: capture. AOT fails and eager does not: decomposition. Neither fails: a later stage."""
    entry, exits = TRUTH[name], TRUTH[name]["exits"]
    for version in entry["alive"]:
        ends = {rung: exits.get(rung, {}).get(version) for rung in BELOW}
        if ends["eager"]:
            assert entry["stage"] == "capture"
        elif ends["aot_eager"] or ends["aot_eager_decomp_partition"]:
            assert entry["stage"] == ("decomposition" if ends["eager"] == 0 else entry["stage"])
        elif ends["aot_eager_decomp_partition"] == 0:
            assert entry["stage"] not in ("capture", "decomposition")


def test_both_halves_hold_every_large_stage() -> None:
    halves = {half: {e["stage"] for e in TRUTH.values() if e["half"] == half} for half in ("develop", "held")}
    assert {"capture", "decomposition"} <= halves["develop"] & halves["held"]


def test_runs_replace_only_what_was_measured() -> None:
    entry = {"stage": "capture", "exits": {"eager": {"2.11.0": 1}, "as_written": {"2.11.0": 1}}, "alive": ["2.11.0"]}
    runs = [
        scripts_table.Run("some", "2.11.0", "as_written", 0, 1.0, ""),
        scripts_table.Run("some", "2.12.0", "eager", -8, 1.0, ""),
        scripts_table.Run("some", "2.13.0", "eager", None, 1.0, ""),
        scripts_table.Run("other", "2.13.0", "eager", 1, 1.0, ""),
    ]
    found = scripts_table.merged({"some": entry}, runs)
    assert tomllib.loads(scripts_table.toml(found)) == {
        "some": {
            "stage": "capture",
            "exits": {"eager": {"2.11.0": 1, "2.12.0": -8}, "as_written": {"2.11.0": 0}},
            "alive": ["2.12.0"],
        }
    }


@pytest.mark.slow
def test_the_table_finds_what_the_truth_says(tmp_path: Path) -> None:
    """Three scripts at backends that generate no code, in the installed torch."""
    import torch

    version = torch.__version__.split("+")[0]
    rung = "aot_eager_decomp_partition"
    some = [n for n in SCRIPTS if version in TRUTH[n]["exits"].get(rung, {})][::12][:3]
    if not some:
        pytest.skip(f"truth.toml has no run of torch {version}")
    results = tmp_path / "runs.jsonl"
    command = [sys.executable, str(HERE / "scripts_table.py"), "--python", f"{version}={sys.executable}"]
    command += [
        "--results",
        str(results),
        "--rungs",
        rung,
        "--check",
        "--scripts",
        *(str(FOLDER / f"{n}.py") for n in some),
    ]
    spared = {
        **os.environ,
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
    }  # no code is generated: no probe of the vector instructions
    done = subprocess.run(command, capture_output=True, text=True, env=spared)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [json.loads(line)["script"] for line in results.read_text().splitlines()] == some
