"""The pytest file that a pass author keeps: exact counts, and nothing wrong with what the pass leaves."""

from __future__ import annotations

import os
import pprint
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from conformance.errors import UsageError
from conformance.passes.examination import Examination

TEXT = '''"""Exact match counts, written by `conformance pass … --pin` with torch {version}.

A count that changes is a finding: `conformance pass {first}` says which stage changed it. Write the file again to accept the new counts.
"""

import pytest
from conformance.passes.fixtures import compiled_with  # noqa: F401 - a fixture

FOLDER = {folder!r}  # micrographs of our own, beside the suite's
TARGET = {target!r}
# pass → micrograph → pattern → matches
COUNTS = {counts}
CASES = [(what, micrograph) for what, found in COUNTS.items() for micrograph in found]


@pytest.mark.parametrize(("what", "micrograph"), CASES)
def test_matches(compiled_with, what, micrograph):  # noqa: F811
    made = compiled_with(what, micrograph, folder=FOLDER, target=TARGET)
    assert made.matches == COUNTS[what][micrograph], made.why()
    assert made.serious() == [], "numerics, metadata, writes"
'''


def write(file: Path, results: Mapping[str, Sequence[Examination]], options: Mapping[str, Any]) -> Path:
    """Write the test file. Paths in it are relative to it, so that the repository can be cloned elsewhere."""
    wrong = [made for found in results.values() for made in found if made.serious()]
    if wrong:
        raise UsageError(f"nothing is pinned: {wrong[0].name} on {wrong[0].micrograph}: {wrong[0].serious()[0]}")
    counts: dict[str, dict[str, dict[str, int]]] = {}
    folder = options.get("micrographs")
    for address, found in results.items():
        source, _, name = address.rpartition(":")
        beside = Path(source).parent / "micrographs"
        folder = folder or (beside if beside.is_dir() else None)
        counts[f"{_relative(Path(source), file)}:{name}"] = {e.micrograph: e.matches for e in found if not e.skipped}
    text = TEXT.format(
        version=str(torch.__version__).split("+")[0],
        first=next(iter(counts), ""),
        folder=_relative(folder, file) if folder else None,
        target=options.get("target", "cpu"),
        counts=pprint.pformat(counts, width=110, sort_dicts=False),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def _relative(path: Path, file: Path) -> str:
    return Path(os.path.relpath(path.resolve(), file.resolve().parent)).as_posix()
