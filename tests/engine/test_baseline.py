"""What the same version did before: what is held against it, and where it does not apply."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from conformance.baseline import Baseline
from conformance.cell import Cell
from conformance.trace import Observation

ENV = {
    "torch": "2.14.1",
    "python": platform.python_version(),
    "machine": "x86_64",
    "cpu": "AVX2",
    "threads": 2,
    "gpu": None,
    "backends": {"inductor": {"torch": "2.14.1"}},
}


def moved(
    tmp_path: Path,
    cell: str,
    then: dict[str, Any],
    now: dict[str, Any],
    crashed: bool = False,
    graphs: int = 2,
    **env: Any,
) -> list[str]:
    line = {
        "cell": cell,
        "verdict": "pass",
        "reason": "",
        "findings": [],
        "observation": then,
        "seconds": 0,
        "micrograph": "m1",
        "texts": {"graph 0": "0123abcd", "graph 1": "0123abce"},
    }
    header = {
        "schema": "conformance/1",
        "suite": "s",
        "commit": "c",
        "env": ENV,
        "expectations": "e",
        "argv": [],
        "started": "",
    }
    (tmp_path / "then.jsonl").write_text(json.dumps(header) + "\n" + json.dumps(line) + "\n")
    seen = Observation(now, {f"graph {number}": "…" for number in range(graphs)})
    found = list(Baseline({**ENV, **env}, tmp_path).findings(Cell.parse(cell), "m1", seen, crashed))
    assert {finding.check for finding in found} <= {"BAS001"}
    return [finding.detail.split(" (")[0] for finding in found]


def test_a_fact_that_moved_is_named(tmp_path: Path) -> None:
    assert moved(tmp_path, "fusion/inductor/cpu/norm.rmsnorm", {"kernels": 1}, {"kernels": 2}) == [
        "kernels moved: 1 → 2"
    ]


def test_graphs_that_a_crash_kept_from_being_compiled_did_not_move(tmp_path: Path) -> None:
    cell, then, now = "postgrad/inductor/sm_90/norm.rmsnorm", {"ops": {"aten.mul": 2}}, {"ops": {"aten.mul": 1}}
    assert moved(tmp_path, cell, then, now, crashed=True, graphs=1) == []
    assert moved(tmp_path, cell, then, now, crashed=True) == ["ops moved: aten.mul 2 → 1"]  # all are there
    assert moved(tmp_path, cell, then, now, graphs=1) == ["ops moved: aten.mul 2 → 1"]


def test_what_did_not_move_is_quiet(tmp_path: Path) -> None:
    assert (
        moved(tmp_path, "fusion/inductor/cpu/norm.rmsnorm", {"kernels": 1, "other": 3}, {"kernels": 1, "other": 4})
        == []
    )


@pytest.mark.parametrize("key, value", [("machine", "aarch64"), ("cpu", "AVX512")])
def test_another_machine_may_fuse_otherwise_but_captures_alike(tmp_path: Path, key: str, value: Any) -> None:
    assert moved(tmp_path, "fusion/inductor/cpu/norm.rmsnorm", {"kernels": 1}, {"kernels": 2}, **{key: value}) == []
    assert moved(tmp_path, "capture/inductor/cpu/norm.rmsnorm", {"graphs": 1}, {"graphs": 2}, **{key: value}) == [
        "graphs moved: 1 → 2"
    ]


def test_what_a_gpu_or_threads_have_to_do_with_it(tmp_path: Path) -> None:
    then, now = {"kernels": 1}, {"kernels": 2}
    assert moved(tmp_path, "fusion/inductor/cpu/norm.rmsnorm", then, now, gpu="H200", threads=8) == [
        "kernels moved: 1 → 2"
    ]
    assert moved(tmp_path, "fusion/inductor/sm_90/norm.rmsnorm", then, now, gpu="H200", machine="aarch64") == [
        "kernels moved: 1 → 2"
    ]
    assert moved(tmp_path, "fusion/inductor/cuda/norm.rmsnorm", then, now, gpu="H200") == []
    assert moved(tmp_path, "capture/inductor/cuda/norm.rmsnorm", {"graphs": 1}, {"graphs": 2}, gpu="H200") == []


def test_another_python_guards_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "python_version", lambda: "3.99.0")
    assert moved(tmp_path, "capture/inductor/cpu/norm.rmsnorm", {"graphs": 1}, {"graphs": 2}) == []
    assert moved(tmp_path, "decomposition/inductor/cpu/norm.rmsnorm", {"ops": {"a": 1}}, {"ops": {"a": 2}}) == [
        "ops moved: a 1 → 2"
    ]


def test_another_version_is_no_baseline(tmp_path: Path) -> None:
    assert moved(tmp_path, "capture/inductor/cpu/norm.rmsnorm", {"graphs": 1}, {"graphs": 2}, torch="2.15.0") == []


def test_how_many_guards_of_identity_depends_on_the_process_but_not_whether(tmp_path: Path) -> None:
    cell = "capture/inductor/cpu/control_flow.cond"
    then = {"guards": {"ID_MATCH": 14, "TENSOR_MATCH": 3}}
    assert moved(tmp_path, cell, then, {"guards": {"ID_MATCH": 15, "TENSOR_MATCH": 3}}) == []
    assert moved(tmp_path, cell, then, {"guards": {"TENSOR_MATCH": 3}}) == ["guards moved: ID_MATCH 14 → 0"]
    assert moved(tmp_path, cell, then, {"guards": {"ID_MATCH": 14, "TENSOR_MATCH": 2}}) == [
        "guards moved: TENSOR_MATCH 3 → 2"
    ]
