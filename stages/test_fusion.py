"""Fusion: what was put together, what stayed apart, and what went to a library."""

from __future__ import annotations

import pytest

from conformance.plugin import CellReport

pytestmark = pytest.mark.stage_fusion


def test_fused_as_far_as_promised_and_no_further(cell: CellReport) -> None:
    cell.must_hold()
