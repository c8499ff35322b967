"""Decomposition: the graph in core ops, functional, with every mutation accounted for."""

from __future__ import annotations

import pytest

from conformance.plugin import CellReport

pytestmark = pytest.mark.stage_decomposition


def test_decomposed_into_core_ops_that_compute_the_same(cell: CellReport) -> None:
    cell.must_hold()
