"""The file that a maintainer gets: it needs nothing of this project, and its exit code tells the truth."""

from __future__ import annotations

import contextlib
import io
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import fx

from conformance import backends
from conformance.repro import Report
from conformance.triage import graph_repro

INF, NAN = float("inf"), float("nan")
ROOT = Path(__file__).resolve().parents[2]
RUFF = Path(sys.executable).with_name("ruff")


def written(path: Path, function: Any, inputs: tuple[Any, ...], kind: str = "wrong_result") -> str:
    report = Report("title", "codegen", "what eager gives", "detail", {"torch": torch.__version__}, "culprit")
    graph_repro.write(path, fx.symbolic_trace(function), inputs, report, kind, ("torch.compile", ""))
    text = path.read_text()
    assert "conformance" not in text
    return text


def outcome(path: Path, compiler: str) -> tuple[int, str]:
    """Run it with another compiler in the place of torch.compile: what a right or a wrong one would make of it."""
    path.write_text(path.read_text().replace("torch.compile(module)", f"({compiler})(module)"))
    said, code = io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.chdir(path.parent):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
            said.write("" if isinstance(end.code, int) else f"{end.code}")
    return code, said.getvalue().strip().splitlines()[-1]


def double(x: torch.Tensor) -> Any:
    return (x * 2, x > 0)


RIGHT, WRONG = "lambda m: m", "lambda m: lambda x: (x * 2.01, x > 0)"
SPECIAL = (torch.tensor([1.0, -2.5, INF, -INF, NAN, 0.1]),)


@pytest.mark.parametrize(
    ("compiler", "code", "said"),
    [
        (RIGHT, 0, "the defect is gone"),
        (WRONG, 1, "output 0: error 0.025 against fp64"),
        ("lambda m: lambda x: (x * 2, x >= 0.5)", 1, "in eager: "),
        ("lambda m: lambda x: (x.nan_to_num() * 2, x > 0)", 1, "where eager gives"),
        ("lambda m: lambda x: (x.double() * 2, x > 0)", 1, "in eager: torch.float32"),
        ("lambda m: lambda x: 1 / 0", 3, "ZeroDivisionError"),
    ],
    ids=["right", "wrong", "wrong integers", "another infinity", "another dtype", "does not run here"],
)
def test_exits_1_while_the_defect_is_there(tmp_path: Path, compiler: str, code: int, said: str) -> None:
    path = tmp_path / "repro.py"
    written(path, double, SPECIAL)
    got = outcome(path, compiler)
    assert (got[0], said in got[1]) == (code, True), got


def test_a_lost_write(tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    for compiler, code in ((RIGHT, 0), ("lambda m: lambda x: m(x.clone())", 1)):
        written(path, lambda x: x.add_(1), (torch.zeros(3),), "lost_mutation")
        assert outcome(path, compiler)[0] == code


def test_numbers_have_as_few_digits_as_they_need(tmp_path: Path) -> None:
    values = torch.tensor([0.1, 1 / 3, 16777216.0, INF])
    text = written(tmp_path / "repro.py", double, (values,))
    assert "[0.1, 0.33333334, 16777216.0, float('inf')]" in text
    assert "NoneType" not in text and "fx_pytree" not in text


ENTRIES = {
    (backend, stage): entry
    for backend in ("inductor", "inductor_cudagraphs", "torch_tensorrt", "autodeploy")
    for stage in ("", "decomposition", "postgrad", "fusion", "codegen")
    if (entry := backends.get(backend).repro_entry(stage)) is not None  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("name", {name: text for name, text in ENTRIES.values() if text})
def test_entries_are_python_and_import_nothing_of_this_project(name: str) -> None:
    text = dict(ENTRIES.values())[name]
    compile(text, name, "exec")
    assert f"def {name}(" in text and "conformance" not in text


def test_engines_have_no_repro_without_a_gpu_and_one_for_the_whole_program() -> None:
    assert ("torch_tensorrt", "codegen") not in ENTRIES and ENTRIES["torch_tensorrt", ""][0] == "built"


@pytest.mark.skipif(shutil.which("ruff") is None and not RUFF.exists(), reason="needs ruff")
@pytest.mark.parametrize(("backend", "stage"), ENTRIES)
@pytest.mark.parametrize("kind", ["wrong_result", "lost_mutation"])
def test_what_is_written_is_as_people_write_it(tmp_path: Path, backend: str, stage: str, kind: str) -> None:
    path = tmp_path / "repro.py"
    report = Report("title", stage, "what eager gives", "detail " * 40, {"torch": "2"}, "culprit")
    values = (torch.randn(7, 9), torch.tensor([INF, NAN]))
    gm = fx.symbolic_trace(lambda x, y: (torch.roll(x, 1, 0).clamp(min=-INF), y + 1))
    graph_repro.write(path, gm, values, report, kind, ENTRIES[backend, stage], "some_transform")
    ruff = shutil.which("ruff") or str(RUFF)
    done = subprocess.run(
        [ruff, "check", "--config", str(ROOT / "pyproject.toml"), str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
