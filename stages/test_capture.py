"""Capture: what the front end took from the program, and when it takes it again."""

from __future__ import annotations

import pytest

from conformance.plugin import CellReport

pytestmark = pytest.mark.stage_capture


def test_captured_whole_and_again_exactly_when_it_must(cell: CellReport) -> None:
    cell.must_hold()
