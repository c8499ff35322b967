"""A real browser, and a tab of it that remembers what went wrong on it."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


class Tab:
    """A page that remembers what went wrong on it, and what it asked for."""

    def __init__(self, browser: Any, width: int = 1440, height: int = 900, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.outside: list[str] = []
        self.page.on(
            "console", lambda message: message.type in ("error", "warning") and self.faults.append(message.text)
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:", "blob:")) or self.outside.append(request.url),
        )

    def open(self, path: Path, view: str = "") -> Any:
        self.page.goto("about:blank")
        self.page.goto(path.as_uri() + view)
        self.page.wait_for_selector("html[data-painted]")
        return self.page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for one module: while Playwright is open its event loop runs in this thread, and neither a second one nor pytest itself
    can be started in it."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if path is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any) -> Iterator[Tab]:
    """Every test with a tab also checks: no error on the console, and nothing loaded from elsewhere."""
    tab = Tab(chromium)
    yield tab
    tab.context.close()
    assert tab.faults == []
    assert tab.outside == []


@pytest.fixture
def phone(chromium: Any) -> Iterator[Tab]:
    """The same, 390 × 844."""
    tab = Tab(chromium, 390, 844)
    yield tab
    tab.context.close()
    assert tab.faults == []
    assert tab.outside == []


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, fetched by npm and never part of this repository."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here to fetch axe-core")
    folder = tmp_path_factory.mktemp("axe")
    try:
        done = subprocess.run(["npm", "pack", "axe-core@4"], cwd=folder, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not fetch axe-core within 120 s")
    if done.returncode:
        pytest.skip(f"npm cannot fetch axe-core: {done.stderr.strip().splitlines()[-1:]}")
    with tarfile.open(next(folder.glob("axe-core-*.tgz"))) as packed:
        file = packed.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


def serious(page: Any, axe: str) -> list[tuple[str, str, str]]:
    """What axe-core finds on a page that is serious or worse: the rule, the element, and how to mend it."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        (one["id"], one["nodes"][0]["html"][:160], one["nodes"][0]["failureSummary"][:300])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
