"""Post-grad: what the rewriting passes made of the graph."""

from __future__ import annotations

import pytest

from conformance.plugin import CellReport

pytestmark = pytest.mark.stage_postgrad


def test_rewritten_as_promised_without_changing_the_answer(cell: CellReport) -> None:
    cell.must_hold()
