"""A program that ends its process costs the cell of the stage that is at fault: the other stages of the same compile are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance import paths

IN_A_KERNEL = """
from conformance.seeded.codegen import written
there = "*(volatile float*)16"
held = written(lambda x: f"({x} + {there})", lambda x: f"({x} + at::vec::Vectorized<float>({there}))", name="tanh")
held.__enter__()
"""
AROUND_THE_PROGRAM = """
import os, signal
from conformance.backends.inductor.seam import seam
held = seam.subscribe(run_program=lambda proceed, *args: os.kill(os.getpid(), signal.SIGSEGV))
held.__enter__()
"""
ONCE = """
import os, signal
from pathlib import Path
from conformance.backends.inductor.seam import seam

def die_once(proceed, *args):
    mark = Path(os.environ["MARK"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    return proceed(*args)

held = seam.subscribe(run_program=die_once)
held.__enter__()
"""


def verdicts(folder: Path, plugin: str, *micrographs: str) -> dict[str, dict[str, str]]:
    """What a run says of each micrograph: stage → verdict and reason."""
    (folder / "dying.py").write_text(plugin)
    env = os.environ | {
        "PYTHONPATH": f"{paths.PACKAGE.parent}{os.pathsep}{folder}",
        "MARK": str(folder / "mark"),
    }
    command = [
        sys.executable,
        "-m",
        "conformance.cli",
        "run",
        "-b",
        "inductor",
        "-t",
        "cpu",
        "--plugin",
        "dying",
        "-n",
        "2",
    ]
    command += ["--no-baseline", "--record", "r.jsonl", *(word for name in micrographs for word in ("-m", name))]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    found: dict[str, dict[str, str]] = {}
    for line in (json.loads(text) for text in (folder / "r.jsonl").read_text().splitlines()[1:]):
        stage, _, _, name = line["cell"].split("/")
        found.setdefault(name, {})[stage] = f"{line['verdict']} {line['reason']}"
    return found


def words(cells: dict[str, str]) -> list[str]:
    return [said.split()[0] for said in cells.values()]


def test_a_kernel_that_ends_the_process_is_codegens_fault(tmp_path: Path) -> None:
    found = verdicts(tmp_path, IN_A_KERNEL, "pointwise.chain", "pointwise.broadcast")
    assert words(found["pointwise.chain"]) == ["pass", "pass", "pass", "pass", "error", "blocked", "blocked"]
    assert "SIGSEGV" in found["pointwise.chain"]["codegen"]
    assert words(found["pointwise.broadcast"]) == ["pass"] * 7


@pytest.mark.parametrize(
    "plugin", [AROUND_THE_PROGRAM, pytest.param(ONCE, marks=pytest.mark.slow)], ids=["always", "once"]
)
def test_a_call_that_ends_the_process_is_the_runtimes_fault(tmp_path: Path, plugin: str) -> None:
    """In a program that eager refuses, too: its earlier forms refuse it as eager does, and that excuses nothing."""
    micrograph = "pointwise.chain" if plugin is ONCE else "upstream.validation.gather_negative"
    cells = verdicts(tmp_path, plugin, micrograph)[micrograph]
    assert words(cells)[:6] == ["pass", "pass", "pass", "pass", "pass", "error"]
    assert "SIGSEGV" in cells["runtime"]
