"""The matrix as one HTML page. It loads nothing from elsewhere; large evidence lies in a folder beside it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from conformance.report import sanitize
from conformance.report.columns import CHUNK, encode, order
from conformance.report.evidence import Evidence, json_text
from conformance.report.load import Loaded, mapping, no_collection
from conformance.report.matrix import Matrix
from conformance.report.style import LETTERS

HOME = Path(__file__).parent
SCRIPTS = ("data", "state", "filters", "grid", "highlight", "compare", "graph", "charts", "panel", "views", "main")


def write_page(matrix: Matrix, path: Path, title: str = "Compatibility matrix", evidence: bool = True) -> list[Path]:
    """Write the page, and the folder of its evidence where it needs one and may have one. Returns what was written."""
    with no_collection():
        return _write_page(matrix, path, title, evidence)


def _write_page(matrix: Matrix, path: Path, title: str, evidence: bool) -> list[Path]:
    placed = order(matrix)
    entries = [entry for _, _, entry in placed]
    store = Evidence(path.with_name(path.stem + ".evidence") if evidence else None)
    data = {**_head(matrix, title), **encode(matrix, placed), "chunk": CHUNK, "chunks": store.facts(entries)}
    data["prefix"], data["missing"] = store.texts(entries)
    if data["missing"]:
        said = f"{len(data['missing'])} texts are not beside their records: keep the folder NAME.texts beside NAME.jsonl"
        data["problems"] = [*data["problems"], said]
    data["folder"] = store.folder.name if store.folder else ""
    store.sweep()
    inline = {name: Markup(encoded) for name, encoded in store.inline.items()}
    path.write_text(render("matrix.html", title=title, data=data, scripts=SCRIPTS, inline=inline), encoding="utf-8")
    return [path, *sorted(store.files)]


def render(template: str, **values: Any) -> str:
    """The nonce is a digest of the page itself, so that no text of a record can carry it."""
    page = _environment().get_template(template)
    content = json_text(values["data"]) if "data" in values else page.render(nonce="", **values)
    return page.render(nonce=hashlib.sha256(content.encode()).hexdigest()[:24], **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HOME / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["json"] = lambda value: Markup(json_text(value))
    environment.globals["static"] = static
    return environment


def static(name: str) -> Markup:
    """A style sheet or script of our own, as it is."""
    return Markup((HOME / "static" / name).read_text(encoding="utf-8"))


def describe(run: Loaded) -> dict[str, Any]:
    """A run's header, as the page shows it."""
    backends = {backend: dict(run.versions(backend)) for backend in mapping(run.env.get("backends"))}
    argv = run.header.get("argv")
    return {
        "label": run.label,
        "file": sanitize.name(run.path.name),
        "suite": run.suite,
        "started": run.started,
        "torch": sanitize.name(run.env.get("torch")),
        "python": sanitize.name(run.env.get("python")),
        "machine": run.machine,
        "backends": {sanitize.name(backend): said for backend, said in backends.items()},
        "argv": [sanitize.name(word) for word in argv[:50]] if isinstance(argv, list) else [],
        "cells": len(run.cells),
    }


def _head(matrix: Matrix, title: str) -> dict[str, Any]:
    latest = set(matrix.latest())
    return {
        "schema": "conformance-page/1",
        "title": title,
        "runs": [describe(run) for run in matrix.runs],
        "problems": matrix.problems[:100],
        "stages": matrix.stages,
        "letters": [LETTERS.get(stage, stage[:1]) for stage in matrix.stages],
        "columns": [[*column, int(column in latest)] for column in matrix.columns],
        "rows": matrix.rows,
    }
