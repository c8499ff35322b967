"""Codegen: the program, its kernels, and that they compute what the graph says."""

from __future__ import annotations

import pytest

from conformance.plugin import CellReport

pytestmark = pytest.mark.stage_codegen


def test_generated_code_that_computes_what_the_graph_says(cell: CellReport) -> None:
    cell.must_hold()
