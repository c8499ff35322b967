"""The wheel, as a stranger gets it: built from this checkout, installed into an empty environment with torch, used from an empty folder.

    python tests/wheel/check_wheel.py [--torch 2.15.0]

Exits 1 at the first command that does not do what it should.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The command, and what its output must contain.
COMMANDS: list[tuple[list[str], str]] = [
    (["conformance", "--version"], "0."),
    (["conformance", "list", "-m", "norm.*"], "norm.rmsnorm"),
    (
        ["conformance", "run", "-b", "inductor", "-t", "cpu", "-m", "norm.rmsnorm", "--record", "run.jsonl"],
        "0 unexpected",
    ),
    (["conformance", "matrix", "run.jsonl", "-o", "matrix.html"], ""),
    (["conformance", "show", "fusion/inductor/cpu/norm.rmsnorm", "--record", "run.jsonl"], "pass"),
    (["conformance", "diff", "run.jsonl", "run.jsonl"], ""),
    (["conformance", "selftest", "--list"], "capture"),
    (
        [
            "pytest",
            "-p",
            "no:cacheprovider",
            "--pyargs",
            "conformance.stages",
            "-q",
            "-m",
            "stage_fusion and inductor",
            "--micrograph",
            "norm.rmsnorm",
        ],
        "1 passed",
    ),
]


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, text=True, check=True, **options)  # type: ignore[call-overload, no-any-return]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", default="2.15.0")
    parser.add_argument("--uv", default=shutil.which("uv") or "uv")
    options = parser.parse_args()
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run([sys.executable, "-m", "build", "--wheel", str(ROOT)], stdout=subprocess.DEVNULL)
    (wheel,) = (ROOT / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="conformance-wheel-") as folder:
        env, here = Path(folder) / "env", Path(folder) / "empty"
        here.mkdir()
        run([options.uv, "venv", "-q", str(env)])
        run([options.uv, "pip", "install", "-q", "-p", str(env), f"torch=={options.torch}", str(wheel)])
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TOX", "VIRTUAL_ENV"))
        }
        clean |= {
            "PATH": f"{env / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "CONFORMANCE_HOME": str(Path(folder) / "home"),
        }
        for command, expected in COMMANDS:
            done = subprocess.run(command, cwd=here, env=clean, capture_output=True, text=True, timeout=900)
            shown = " ".join(command)
            if done.returncode or expected not in done.stdout + done.stderr:
                print(
                    f"FAILED: {shown}\nexit code {done.returncode}; expected to read {expected!r}\n{done.stdout}\n{done.stderr}"
                )
                return 1
            print(f"ok: {shown}")
        left = [
            str(file) for file in here.rglob("*") if file.suffix not in (".jsonl", ".html", ".txt") and file.is_file()
        ]
        if left:
            print(f"FAILED: files left in the folder: {left[:5]}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
