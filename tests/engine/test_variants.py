"""The variants of Inductor: what each finds by itself, and what each says when a name that it alone needs is gone."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance import backends
from conformance.backends.inductor import seam as seams
from conformance.backends.inductor import variants
from conformance.library import load
from conformance.seam import Seam
from conformance.session import results_here
from conformance.stage import Stage
from conformance.target import CPU
from conformance.verdict import Kind, Verdict

pytestmark = pytest.mark.own_process  # what earlier tests compiled is in no cache

MICROGRAPH = load()["training.linear"]
TABLES = {
    "inductor_cudagraphs": seams.cudagraphs,
    "inductor_max_autotune": seams.max_autotune,
    "inductor_autograd": seams.compiled_autograd,
    "inductor_aot": seams.ahead_of_time,
}
SERVING = [
    (variant, table, key) for variant, table in TABLES.items() for key, name in table.names.items() if name.stages
]


def captured() -> Any:
    return results_here(MICROGRAPH, backends.get("inductor_autograd"), CPU, (Stage.CAPTURE,))[Stage.CAPTURE]


def test_cap006_a_backward_pass_that_compiled_autograd_does_not_capture() -> None:
    """The switch that does nothing: gradients are computed all the same, by the backward that AOTAutograd compiled."""
    assert captured().verdict is Verdict.PASS
    with seams.compiled_autograd.replace(enable=lambda compiler: nullcontext()):
        result = captured()
    assert result.verdict is Verdict.FAIL
    assert [(finding.check, finding.kind) for finding in result.findings] == [("CAP006", Kind.GRAPH_BREAK)]


@pytest.mark.parametrize(
    ("variant", "table", "key"), SERVING, ids=lambda value: value if isinstance(value, str) else value.compiler
)
def test_no_stage_that_a_missing_name_serves_passes(
    variant: str, table: Seam, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = table.names[key]
    monkeypatch.setitem(table.names, key, replace(name, path=f"{name.path}_gone"))
    backend = backends.get(variant)
    assert table in backend.seams()
    results = results_here(MICROGRAPH, backend, CPU, name.stages)
    assert {result.verdict for result in results.values()} <= {Verdict.UNAVAILABLE, Verdict.UNSUPPORTED}
    if "cpu" in backend.targets():
        assert {*name.stages} <= {*backend.unavailable(CPU)}


@pytest.mark.skipif(os.name == "nt", reason="needs /bin/sh")
@pytest.mark.parametrize(("answer", "linked"), [("libstdc++.so", True), ("/usr/lib/libstdc++.so", False)])
def test_a_compiler_without_a_shared_library_makes_no_packages(
    answer: str, linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on a GPU host: every package crashed when it was loaded."""
    compiler = tmp_path / "g++"
    compiler.write_text(f"#!/bin/sh\necho {answer}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.delenv("LIBRARY_PATH", raising=False)
    variants._library_is_linked_in.cache_clear()
    try:
        reasons = set(backends.get("inductor_aot").unavailable(CPU).values())
    finally:
        variants._library_is_linked_in.cache_clear()
    assert (variants.LINKED_IN in reasons) is linked
