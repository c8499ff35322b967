"""Triage with the real compiler, where that is cheap."""

from __future__ import annotations

from pathlib import Path

from conformance import seeded
from conformance.stage import Stage
from conformance.triage import ladder
from conformance.triage.subject import find

TEXT = """import torch
example_inputs = (torch.randn(6, 33),)
def Thing(x): return (torch.tanh(x * 2) + 1).sum(-1)
"""


def thing(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    return f"{path}:Thing"


def test_where_nothing_fails_nothing_is_found(tmp_path: Path) -> None:
    found = ladder.triage(find(thing(tmp_path)))
    assert found.first is None
    assert Stage.RUNTIME in found.results and Stage.CACHE not in found.results


def test_from_a_fault_to_its_repro(tmp_path: Path) -> None:
    with seeded.get("tanh_written_as_sinh"):
        found = ladder.triage(find(thing(tmp_path)), out=tmp_path / "out", limit=60)
    assert found.first is not None and found.first.cell.stage is Stage.CODEGEN
    assert found.culprit is not None and found.culprit.what == "kernel" and "aten.tanh.default" in found.culprit.ops
    assert found.reduced is not None and (found.reduced.before, found.reduced.nodes) == (4, 1)
    assert found.repro is not None and found.issue is not None
    assert found.verified == "exit 0 in a fresh process: the defect is gone", "there the compiler is whole"
    assert "**Stage**: codegen" in found.issue.read_text()
