"""The pytest file that a pass author keeps: exact counts, and nothing wrong with what the pass leaves."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from conformance.errors import UsageError
from conformance.passes.examination import Examination
from conformance.passes.selection import folders_of

TEXT = '''"""Exact match counts, written with torch {version} by

    conformance pass {command}

A count that changes is a finding: the same command without --pin says which stage changed it, with --pin it accepts the new counts.
"""

import pytest
from conformance.passes.fixtures import compiled_with  # noqa: F401 - a fixture

FOLDERS = {folders}  # micrographs of our own, beside the suite's
TARGET = {target}
HOOK = {hook}  # None: where the pass itself says
# pass → micrograph → pattern → matches
COUNTS = {counts}
CASES = [(what, micrograph) for what, found in COUNTS.items() for micrograph in found]


@pytest.mark.parametrize(("what", "micrograph"), CASES)
def test_matches(compiled_with, what, micrograph):  # noqa: F811
    made = compiled_with(what, micrograph, folder=FOLDERS, target=TARGET, hook=HOOK)
    assert made.matches == COUNTS[what][micrograph], made.why()
    assert made.serious() == [], "numerics, metadata, writes"
'''


def write(file: Path, results: Mapping[str, Sequence[Examination]], options: Mapping[str, Any]) -> Path:
    """Write the test file. Paths in it are relative to it, so that the repository can be cloned elsewhere."""
    wrong = [made for found in results.values() for made in found if made.serious()]
    if wrong:
        raise UsageError(f"nothing is pinned: {wrong[0].name} on {wrong[0].micrograph}: {wrong[0].serious()[0]}")
    counts: dict[str, dict[str, dict[str, int]]] = {}
    folders: dict[str, None] = {}
    for address, found in results.items():
        source, _, name = address.rpartition(":")
        folders |= {_relative(folder, file): None for folder in folders_of(address, options.get("micrographs"))}
        counts[f"{_relative(Path(source), file)}:{name}"] = {e.micrograph: e.matches for e in found if not e.skipped}
    text = TEXT.format(
        version=str(torch.__version__).split("+")[0],
        command=_command(file, results, options),
        folders=_source(list(folders)),
        target=_source(options.get("target", "cpu")),
        hook=_source(options.get("hook")),
        counts=_source(counts),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def _command(file: Path, addresses: Iterable[str], options: Mapping[str, Any]) -> str:
    """The words after `conformance pass`, with paths from the folder in which it was called."""
    words = [os.path.relpath(source) + ":" + name for source, _, name in (a.rpartition(":") for a in addresses)]
    words += [word for glob in options.get("micrograph", ()) for word in ("-m", shlex.quote(glob))]
    words += ["--micrographs", os.path.relpath(options["micrographs"])] if options.get("micrographs") else []
    words += ["-t", options["target"]] if options.get("target", "cpu") != "cpu" else []
    words += ["--hook", options["hook"]] if options.get("hook") else []
    return " ".join([*words, "--pin", os.path.relpath(file)])


def _source(value: Any) -> str:
    """The value as Python source with double quotes, a table with one element a line."""
    return "None" if value is None else json.dumps(value, indent=4 if isinstance(value, dict) else None)


def _relative(path: Path, file: Path) -> str:
    return Path(os.path.relpath(path.resolve(), file.resolve().parent)).as_posix()
