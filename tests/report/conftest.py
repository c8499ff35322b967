"""Records made by hand, and a real browser to open what is made of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance import record
from conformance.report.load import Loaded, load

STAGES = ("capture", "decomposition", "postgrad", "fusion", "codegen", "runtime", "cache")
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"


def header(torch: str = "2.14.1", **more: Any) -> dict[str, Any]:
    backends = {name: {"torch": torch} for name in ("eager", "inductor", "torch_tensorrt", "autodeploy")}
    env = {"torch": torch, "python": "3.11.7", "machine": "x86_64", "backends": backends}
    said = {"schema": record.SCHEMA, "suite": "abc123", "env": env, "argv": ["conformance", "run"]}
    return {**said, "started": "2026-11-15T00:00:00", "expectations": "e1", **more}


def cell(name: str, verdict: str = "pass", **more: Any) -> dict[str, Any]:
    return {"cell": name, "verdict": verdict, "reason": "", "findings": [], "observation": {}, "texts": {}, "seconds": 0.1, **more}


def compile_of(
    micrograph: str, backend: str, target: str, verdicts: Mapping[str, str] | None = None, **observed: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The seven cells of one compile: pass, but for the stages named; `observed` gives a stage its facts."""
    return [
        cell(f"{stage}/{backend}/{target}/{micrograph}", (verdicts or {}).get(stage, "pass"), observation=dict(observed.get(stage, {})))
        for stage in STAGES
    ]


Write = Callable[..., Path]


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


class Tab:
    """A page that remembers what went wrong on it, and what it asked for."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1440, "height": 900}, **options)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.outside: list[str] = []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.faults.append(said.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or self.outside.append(asked.url))

    def open(self, path: Path, view: str = "") -> Any:
        self.page.goto(path.as_uri() + view)
        self.page.wait_for_selector("html[data-painted]")
        return self.page


@pytest.fixture
def tab(chromium: Any) -> Iterator[Tab]:
    """Every test with a tab also says: no error on the console, and nothing loaded from elsewhere."""
    tab = Tab(chromium)
    yield tab
    tab.context.close()
    assert tab.faults == []
    assert tab.outside == []
