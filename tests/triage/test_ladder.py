"""Triage with the real compiler, where that is cheap."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import seeded
from conformance.stage import Stage
from conformance.triage import pipeline
from conformance.triage.micrograph_subject import find
from conformance.triage.open_examination import Held

TEXT = """import torch
example_inputs = (torch.randn(6, 33),)
def Thing(x): return (torch.tanh(x * 2) + 1).sum(-1)
"""


def thing(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    return f"{path}:Thing"


def test_where_nothing_fails_nothing_is_found(tmp_path: Path) -> None:
    found = pipeline.triage(find(thing(tmp_path)))
    assert found.first is None
    assert Stage.RUNTIME in found.results and Stage.CACHE not in found.results


@pytest.mark.slow  # a script goes the same way: tests/triage/test_script.py
def test_from_a_fault_to_its_repro(tmp_path: Path) -> None:
    with seeded.get("tanh_written_as_sinh"):
        found = pipeline.triage(find(thing(tmp_path)), out=tmp_path / "out", limit=60)
    assert found.first is not None and found.first.cell.stage is Stage.CODEGEN
    assert found.culprit is not None and found.culprit.what == "kernel" and "aten.tanh.default" in found.culprit.ops
    assert found.reduced is not None and (found.reduced.before, found.reduced.nodes) == (4, 1)
    assert found.repro is None and not list((tmp_path / "out").iterdir()), "what does not fail is not handed over"
    assert "exit 0 in a fresh process: the defect is gone" in found.unwritten, "there the compiler is whole"


GELU = """import torch
example_inputs = (torch.randn(6, 33) * 2,)
def Thing(x): return torch.nn.functional.gelu(x * 2) + 1
"""


def test_a_wrong_graph_is_found_before_a_kernel_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.codecache import CppPythonBindingsCodeCache

    def build(*args: object, **kwargs: object) -> None:
        raise AssertionError("a kernel was built")

    (tmp_path / "model.py").write_text(GELU)
    subject = find(f"{tmp_path}/model.py:Thing")
    monkeypatch.setattr(Held, "confirmed", lambda self: True)
    monkeypatch.setattr(CppPythonBindingsCodeCache, "load_pybinding", build)
    monkeypatch.setattr(CppPythonBindingsCodeCache, "load_pybinding_async", build)
    with seeded.get("gelu_always_tanh"):
        found = pipeline.triage(subject, shrink=False)
    assert found.first is not None and found.first.cell.stage is Stage.DECOMPOSITION
    assert found.culprit is not None and found.culprit.name == "aten.gelu.default"


@pytest.mark.slow
def test_a_graph_that_is_odd_while_the_program_is_right_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the form of the decomposed graph that the ladder runs is off, not what is compiled from it."""
    from conformance.backends.inductor.watch import GraphRecord

    def at(self: GraphRecord, rung: str) -> object:
        earlier = self._generated() if rung == "generated" else getattr(self, rung, None)
        return earlier if rung != "decomposed" else lambda *inputs: [x + 1.0 for x in earlier(*inputs)]

    monkeypatch.setattr(GraphRecord, "at", at)
    assert pipeline.triage(find(thing(tmp_path))).first is None
