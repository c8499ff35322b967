"""Records made by hand, and a tab of a browser that remembers what went wrong on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conformance import record

Write = Callable[..., Path]
STAGES = ("capture", "decomposition", "postgrad", "fusion", "codegen", "runtime", "cache")


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
