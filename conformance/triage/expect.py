"""From a finding to an entry of the expectations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from packaging.version import Version

from conformance import backends, environment, expectations, paths, sanitize
from conformance.cell import Cell
from conformance.errors import UsageError, unknown
from conformance.library import load
from conformance.record import read
from conformance.target import Target
from conformance.verdict import Kind, Verdict


def add(
    cell: Cell,
    url: str | None,
    repro: Path | None,
    when: str | None,
    why: str | None,
    record: Path | None,
    out: Path | None,
) -> tuple[Path, str]:
    line = _of_record(cell, record) if record else _run(cell)
    entry = make(cell, line, url, repro, when or _minor(cell), why)
    file = out or paths.expectations() / f"{cell.backend}.toml"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if f'cell = "{cell}"' in text:
        raise UsageError(f"{file} has an entry for {cell} already; mend that one")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text.rstrip()}\n\n{entry}".lstrip(), encoding="utf-8")
    try:
        expectations.load(file.parent)
    except UsageError:
        file.write_text(text, encoding="utf-8")
        raise
    return file, entry


def make(cell: Cell, line: dict[str, Any], url: str | None, repro: Path | None, when: str, why: str | None) -> str:
    if line["verdict"] not in ("fail", "error", "fallback", "timeout"):
        raise UsageError(f"{cell} is {line['verdict']}: there is nothing to expect")
    verdict = Verdict(line["verdict"])
    kinds = sorted({finding.get("kind", "") for finding in line["findings"]})
    if unknown_kinds := set(kinds) - {kind.value for kind in Kind}:
        raise unknown("kind of finding", min(unknown_kinds), [kind.value for kind in Kind])
    if len(kinds) > 1 and verdict is not Verdict.FALLBACK:
        raise UsageError(
            f"{cell} has findings of several kinds ({', '.join(kinds)}); triage them apart, an expectation is for one"
        )
    fact = f'kind = "{kinds[0]}"' if kinds and verdict in (Verdict.FAIL, Verdict.ERROR) else f'verdict = "{verdict}"'
    link = f"url = {json.dumps(url)}" if url else f"repro = {json.dumps(str(repro))}"
    reason = why or sanitize.line(line["reason"]) or f"{verdict} at {cell.stage}"
    why_text = json.dumps(reason, ensure_ascii=False)
    return f"[[expect]]\ncell = {json.dumps(str(cell))}\n{fact}\nwhen = {json.dumps(when)}\n{link}\nwhy = {why_text}\n"


def _of_record(cell: Cell, record: Path) -> dict[str, Any]:
    cells = read(record).cells
    if str(cell) not in cells:
        raise unknown(f"cell in {record}", str(cell), cells)
    return cells[str(cell)]


def _run(cell: Cell) -> dict[str, Any]:
    from conformance.session import results_here

    library = load()
    if cell.micrograph not in library:
        raise unknown("micrograph", cell.micrograph, library)
    results = results_here(library[cell.micrograph], backends.get(cell.backend), Target.parse(cell.target))
    return results[cell.stage].to_json()


def _minor(cell: Cell) -> str:
    """This minor version of what the backend is made of: wider only by somebody's hand (or after a bisect)."""
    found = backends.get(cell.backend).versions()
    name = cell.backend if cell.backend in found else "torch"
    version = Version(str(found.get(name, environment.environment()["torch"])).split("+")[0])
    return f"{name}>={version.major}.{version.minor},<{version.major}.{version.minor + 1}"
