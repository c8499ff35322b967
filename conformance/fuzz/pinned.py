"""Findings that became examples of the deterministic suite: a JSON file each, a micrograph each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance import paths
from conformance.contract import Capture, Contract
from conformance.errors import UsageError
from conformance.files import read_json
from conformance.fuzz.example import read, written
from conformance.fuzz.finding import Finding
from conformance.fuzz.observed import outcome
from conformance.fuzz.program import Program, module_of
from conformance.fuzz.program_finding import ProgramFinding
from conformance.fuzz.rungs import surroundings
from conformance.inputs import Tensor
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


def write_program(finding: ProgramFinding, folder: Path | None = None) -> Path:
    """A program of a grammar is kept as its choices."""
    folder = folder or HOME
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"program_{finding.program.grammar}_{finding.id}.json"
    note = {name: getattr(finding, name) for name in ("cause", "report", "stage", "what", "detail", "versions")}
    file.write_text(json.dumps({**finding.program.to_json(), "note": note}, indent=1) + "\n")
    return file


def program_micrograph(program: Program, module: str) -> type[Micrograph]:
    """A scenario that plays the program. Two exceptions are equal, as in fuzzing."""

    def play(self: Any, run: Any, x: Any) -> Any:
        with surroundings(), module_of(program) as made:
            how, what = outcome(made.play, run.compile)
        return (how, what) if how == "value" else how

    members = {
        "__doc__": f"A program of the grammar {program.grammar}: {', '.join(program.cause) or 'as plain as can be'}.",
        "__module__": module,
        "inputs": (Tensor("2"),),
        "contract": Contract(capture=Capture(graphs=None, breaks=None)),
        "forward": lambda self, x: x + 1,
        "play": play,
    }
    return type(f"Program{program.grammar.title().replace('_', '')}{program.id}", (Micrograph,), members)


def micrographs(module: str, folder: Path = HOME) -> Iterator[type[Micrograph]]:
    """A micrograph for each pinned example, as classes of the module that asks."""
    for file in sorted(folder.glob("*.json")):
        try:
            if file.name.startswith("program_"):
                yield program_micrograph(Program.from_json(read_json(file, "the program"), file.name), module)
                continue
            yield read(file).as_micrograph(module=module)
        except UsageError as error:
            raise UsageError(f"pinned example {file.name}: {error}") from None
