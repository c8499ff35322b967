"""The matrix as one HTML page. It loads nothing from elsewhere; large evidence lies in a folder beside it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from conformance.report import clean
from conformance.report.columns import CHUNK, encode, evidence, order
from conformance.report.load import Loaded, mapping, no_collection
from conformance.report.look import LETTERS
from conformance.report.matrix import Entry, Matrix

HOME = Path(__file__).parent
SCRIPTS = ("data", "state", "filters", "grid", "highlight", "compare", "graph", "charts", "panel", "views", "main")
# What may stand on the page itself, beside the columns: together under 3 MB.
INLINE_EVIDENCE = 700_000
INLINE_TEXTS = 500_000
TEXT = 2_000_000
_OWN_FILE = re.compile(r"[0-9a-f]{8,64}\.js")


def write_page(matrix: Matrix, path: Path, title: str = "Compatibility matrix") -> list[Path]:
    """Write the page, and the folder of its evidence where it needs one. Returns what was written."""
    with no_collection():
        return _write_page(matrix, path, title)


def _write_page(matrix: Matrix, path: Path, title: str) -> list[Path]:
    placed = order(matrix)
    data = {**_head(matrix, title), **encode(matrix, placed)}
    folder = path.with_name(path.stem + ".evidence")
    entries = [entry for _, _, entry in placed]
    store = Evidence(folder, inline=INLINE_EVIDENCE)
    data["chunk"] = CHUNK
    data["chunks"] = [store.add(json_text([evidence(entry) for entry in chunk])) for chunk in _chunks(entries)]
    texts = Evidence(folder, inline=INLINE_TEXTS)
    missing = texts.add_texts(entries)
    data["missing"] = missing
    inline = {**store.close(), **texts.close()}
    data["folder"] = folder.name
    written = sorted({*store.files, *texts.files})
    _sweep(folder, {file.name for file in written})
    path.write_text(render("matrix.html", title=title, data=data, scripts=SCRIPTS, inline=inline, matrix=matrix), encoding="utf-8")
    return [path, *written]


class Evidence:
    """Texts by digest: on the page while they are few, else each in a file of its own that the page runs to get it.

    A page opened from a file may not fetch other files, but it may run scripts: so each file is one call."""

    def __init__(self, folder: Path, inline: int) -> None:
        self.folder = folder
        self.room = inline
        self.used = 0
        self.held: dict[str, str] = {}
        self.seen: set[str] = set()
        self.files: list[Path] = []

    def add(self, encoded: str, digest: str | None = None) -> str:
        digest = digest or hashlib.sha256(encoded.encode()).hexdigest()[:16]
        if digest in self.seen:
            return digest
        self.seen.add(digest)
        self.used += len(encoded)
        if self.used > self.room:
            self._spill()
            self._write(digest, encoded)
        else:
            self.held[digest] = encoded
        return digest

    def add_texts(self, entries: list[Entry]) -> list[str]:
        """The texts of all cells; returns the digests whose text is not beside the record."""
        missing = []
        for entry in entries:
            for digest in mapping(entry.line.get("texts")).values():
                if not isinstance(digest, str) or digest in self.seen:
                    continue
                found = entry.run.text(digest, TEXT)
                if found is None:
                    missing.append(clean.name(digest))
                    self.seen.add(digest)
                else:
                    self.add(json_text({"text": found[0], "cut": found[1]}), digest)
        return missing

    def close(self) -> dict[str, Markup]:
        """What stays on the page."""
        return {digest: Markup(encoded) for digest, encoded in self.held.items()}

    def _spill(self) -> None:
        """All or nothing is inline, so that a page without its folder misses all of one kind and says so once."""
        for digest, encoded in self.held.items():
            self._write(digest, encoded)
        self.held.clear()

    def _write(self, digest: str, encoded: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{digest}.js"
        file.write_text(f'conformanceEvidence("{digest}", {encoded});\n', encoding="ascii")
        self.files.append(file)


def json_text(value: Any) -> str:
    """JSON that may stand inside a script element, and in a script: ASCII, without the characters that end either."""
    encoded = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def render(template: str, **values: Any) -> str:
    environment = _environment()
    # Known only once the page is made, so no text of a record can carry it.
    nonce = hashlib.sha256(json_text(values.get("data")).encode()).hexdigest()[:24]
    return environment.get_template(template).render(nonce=nonce, **values)


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
        "file": clean.name(run.path.name),
        "suite": run.suite,
        "started": run.started,
        "torch": clean.name(run.env.get("torch")),
        "python": clean.name(run.env.get("python")),
        "machine": run.machine,
        "backends": {clean.name(backend): said for backend, said in backends.items()},
        "argv": [clean.name(word) for word in argv[:50]] if isinstance(argv, list) else [],
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


def _chunks(entries: list[Entry]) -> Iterator[list[Entry]]:
    for start in range(0, len(entries), CHUNK):
        yield entries[start : start + CHUNK]


def _sweep(folder: Path, keep: set[str]) -> None:
    """Remove what an earlier page left here, and only that: files with our kind of name."""
    if not folder.is_dir():
        return
    for file in folder.iterdir():
        if file.name not in keep and _OWN_FILE.fullmatch(file.name):
            file.unlink()
