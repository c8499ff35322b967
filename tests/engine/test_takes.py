"""Micrographs that stand for one compiler's reports: a run gives them to that compiler, its variants and eager, and to no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from conformance import backends, scenario
from conformance.errors import UsageError
from conformance.library import load
from conformance.plan import select_cells
from conformance.report.load import load as load_records
from conformance.report.matrix import combine
from conformance.report.upstream import ALIVE, reports
from tests.support.samples import cell, write_record

ONE = "upstream.tensorrt_dtype.where_of_bfloats"


def test_only_their_compiler_takes_them() -> None:
    micrograph = load()[ONE]
    assert {name for name in backends.names() if backends.get(name).takes(micrograph)} >= {"torch_tensorrt", "eager"}
    assert not backends.get("inductor").takes(micrograph)
    assert not backends.get("inductor_cudagraphs").takes(micrograph)
    assert backends.get("inductor").takes(load()["norm.rmsnorm"])


def test_a_run_has_cells_of_their_compiler_only() -> None:
    cells = select_cells(["inductor", "torch_tensorrt"], target_names=["sm_90"], globs=[ONE, "norm.rmsnorm"])
    assert {(cell.backend, cell.micrograph) for cell in cells} == {
        ("inductor", "norm.rmsnorm"),
        ("torch_tensorrt", "norm.rmsnorm"),
        ("torch_tensorrt", ONE),
    }


def test_a_run_that_is_left_without_cells_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="is for torch_tensorrt only, not for inductor"):
        select_cells(["inductor"], target_names=["cpu"], globs=[ONE])


def test_reports_say_which_compilers_they_are_of() -> None:
    """A micrograph that is for one compiler names it as the registry does."""
    named = {name for micrograph in load().values() for name in micrograph.backends}
    assert named <= {*backends.names()}


def test_a_report_is_shown_in_columns_of_its_compiler(tmp_path: Path) -> None:
    """Another compiler may fail the same micrograph for a reason of its own."""
    named = {"upstream": ["pytorch/pytorch#1", "pytorch/TensorRT#2", "someone/else#3"]}
    cells = [cell(f"codegen/{name}/cuda/a.b", "fail", **named) for name in ("inductor_cudagraphs", "torch_tensorrt")]
    matrix = combine(load_records([write_record(tmp_path / "run.jsonl", cells)]))
    shown = {report.name: [column.backend for column in report.sightings] for report in reports(matrix)}
    assert shown == {
        "pytorch/pytorch#1": ["inductor_cudagraphs"],
        "pytorch/TensorRT#2": ["torch_tensorrt"],
        "someone/else#3": ["inductor_cudagraphs", "torch_tensorrt"],
    }


def test_what_is_known_to_be_another_defect_is_not_the_report(tmp_path: Path) -> None:
    def state(**line: object) -> str:
        cells = [
            cell("codegen/inductor/cpu/a.b", "xfail", upstream=["pytorch/pytorch#7"], **line),
            cell("runtime/inductor/cpu/a.b"),
        ]
        (report,) = reports(combine(load_records([write_record(tmp_path / "run.jsonl", cells)])))
        return next(iter(report.sightings.values())).state

    assert state(url="https://github.com/pytorch/pytorch/issues/7") == ALIVE
    assert state() == ALIVE
    assert state(url="reports/repros/another.py") != ALIVE
    assert state(url="https://github.com/pytorch/pytorch/issues/77") != ALIVE


class _Two(nn.Module):
    def forward(self, x, y):  # type: ignore[no-untyped-def]
        return x, y


def test_a_scenario_that_makes_its_arguments_cannot_be_exported_with_its_inputs() -> None:
    assert scenario.not_callable(_Two(), (1, 2)) == ""
    assert "missing a required argument: 'y'" in scenario.not_callable(_Two(), (1,))
