"""Runtime: the answer, again and again: values, structure, strides, aliasing, mutation, lifetime."""

from __future__ import annotations

import pytest

from conformance.plugin import CellReport

pytestmark = pytest.mark.stage_runtime


def test_runs_like_eager_however_often(cell: CellReport) -> None:
    cell.must_hold()
