"""Records written to a folder, and a real browser to open what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.report.load import Loaded, load
from tests.support.browser import axe, chromium, phone, tab  # noqa: F401
from tests.support.samples import Write, write_record


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda name, cells, texts=None, **head: write_record(tmp_path / name, cells, texts, **head)


@pytest.fixture
def run_of(write: Write) -> Callable[..., Loaded]:
    def reader(name: str, cells: list[dict[str, Any]], **more: Any) -> Loaded:
        return load([write(name, cells, **more)])[0]

    return reader
