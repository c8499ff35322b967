"""Records written to a folder, and a real browser to open what is made of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from report_samples import Tab, Write, header

from conformance import record
from conformance.report.load import Loaded, load

FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(name: str, cells: list[dict[str, Any]], texts: Mapping[str, str] | None = None, **head: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for text in (texts or {}).values():
            record.keep_text(record.texts_folder(path), text)
        path.write_text("\n".join(json.dumps(line) for line in [header(**head), *cells]) + "\n", encoding="utf-8")
        return path

    return writer


@pytest.fixture
def run_of(write: Write) -> Callable[..., Loaded]:
    def reader(name: str, cells: list[dict[str, Any]], **more: Any) -> Loaded:
        return load([write(name, cells, **more)])[0]

    return reader


# ---------------------------------------------------------------------------------------------- browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    path = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any) -> Iterator[Tab]:
    """Every test with a tab also says: no error on the console, and nothing loaded from elsewhere."""
    tab = Tab(chromium)
    yield tab
    tab.context.close()
    assert tab.faults == []
    assert tab.outside == []
