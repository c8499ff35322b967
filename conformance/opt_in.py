"""Tests that run only where `-m` asks for their marker: otherwise there is nothing to run, and nothing to report as skipped."""

from __future__ import annotations

import pytest


def deselect(config: pytest.Config, items: list[pytest.Item], marker: str) -> None:
    """Take the tests with this marker out of the session."""
    gone = [item for item in items if item.get_closest_marker(marker)]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]
