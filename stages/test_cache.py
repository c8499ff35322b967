"""Cache: a miss, then a hit; never a stale one; the same in a fresh process."""

from __future__ import annotations

import pytest

from conformance.plugin import CellReport

pytestmark = pytest.mark.stage_cache


def test_cached_once_and_never_stale(cell: CellReport) -> None:
    cell.must_hold()
