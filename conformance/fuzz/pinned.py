"""Findings that became examples of the deterministic suite: a JSON file each, a micrograph each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from conformance import paths
from conformance.errors import UsageError
from conformance.fuzz.example import read, written
from conformance.fuzz.finding import Finding
from conformance.micrograph import Micrograph

HOME = paths.data() / "fixtures" / "examples"


def write(finding: Finding, folder: Path | None = None) -> Path:
    """What eager writes to is part of the contract of a pinned example, so that it is found out now and not at every load."""
    folder = folder or HOME
    folder.mkdir(parents=True, exist_ok=True)
    example = replace(finding.example, mutates=written(finding.example, finding.example.base()))
    name = f"{example.micrograph.replace('.', '_')}_{finding.id}.json"
    note = {
        "finding": finding.id,
        "stage": finding.stage,
        "kind": finding.kind,
        "detail": finding.detail,
        "versions": finding.versions,
    }
    (folder / name).write_text(json.dumps({**example.to_json(), "note": note}, indent=1) + "\n")
    return folder / name


def micrographs(module: str, folder: Path = HOME) -> Iterator[type[Micrograph]]:
    """A micrograph for each pinned example, as classes of the module that asks."""
    for file in sorted(folder.glob("*.json")):
        try:
            yield read(file).as_micrograph(module=module)
        except UsageError as error:
            raise UsageError(f"pinned example {file.name}: {error}") from None
