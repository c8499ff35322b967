"""What the same compiler of the same version showed before: a recorded run that was found healthy.

A contract says what must hold of every compiler. A baseline says what this very version did, so that a rewrite that
matches less, an op that is no longer decomposed or a kernel more is seen even where no contract speaks of it. It applies
only where the version (and for later stages the machine) is the same and the micrograph has not changed since.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance import paths, record
from conformance.cell import Cell
from conformance.checks.measured import BASELINE
from conformance.errors import UsageError
from conformance.stage import Stage
from conformance.trace import Observation
from conformance.verdict import Finding, Kind

# Which facts are held against the baseline, and what it is called when one moved.
FACTS: dict[Stage, dict[str, Kind]] = {
    Stage.CAPTURE: {"graphs": Kind.GRAPH_BREAK, "ops": Kind.GRAPH_BREAK, "guards": Kind.MISSED_RECOMPILE},
    Stage.DECOMPOSITION: {"ops": Kind.UNDECOMPOSED, "written_inputs": Kind.LOST_MUTATION},
    Stage.POSTGRAD: {"matches": Kind.MATCH_LOSS, "rewrites": Kind.MATCH_LOSS, "ops": Kind.MATCH_LOSS},
    Stage.FUSION: dict.fromkeys(
        ("kernels", "functions", "library", "ir_nodes", "engines", "ops_in_torch"), Kind.UNFUSED
    ),
    Stage.CODEGEN: {"programs": Kind.BAD_CODE, "vector_kernels": Kind.BAD_CODE},
    Stage.RUNTIME: {"outputs": Kind.WRONG_METADATA, "shares": Kind.LOST_ALIAS, "mutates": Kind.LOST_MUTATION},
    Stage.CACHE: {"first": Kind.CACHE_MISS, "again": Kind.CACHE_MISS, "fresh_process": Kind.CACHE_MISS},
}
# Decided before the machine matters. Records say how far that goes: Inductor's on the CPU, of aarch64 and x86_64 and of two
# versions, show the same facts in 435 cells of these stages each; Inductor's and Torch-TensorRT's for `sm_90` in all seven.
PORTABLE = {Stage.CAPTURE, Stage.DECOMPOSITION, Stage.POSTGRAD}


class Baseline:
    def __init__(self, env: Mapping[str, Any], folder: Path | str | None = None) -> None:
        self.env = env
        folder = paths.reports() if folder is None else Path(folder)
        self.cells: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}  # cell → (its header's env, its line)
        for file in sorted(folder.glob("*.jsonl")):
            try:
                if record.header(file).get("env", {}).get("torch") != env.get("torch"):
                    continue
                run = record.read(file)
            except UsageError:
                continue
            for name, line in run.cells.items():
                self.cells.setdefault(name, []).append((run.header.get("env", {}), line))

    def findings(self, cell: Cell, micrograph: str, seen: Observation, crashed: bool = False) -> Iterator[Finding]:
        """What moved since the recorded run. After a crash there are fewer graphs, since the rest (a backward pass) was never compiled:
        that is the crash's, and nothing moved at this stage."""
        line = self._line(cell, micrograph)
        if line is None or (crashed and len(seen.texts) < len(line["texts"])):
            return
        then, facts = line.get("observation", {}), seen.facts
        for fact, kind in FACTS.get(cell.stage, {}).items():
            if fact in then and fact in facts and _settled(fact, then[fact]) != _settled(fact, facts[fact]):
                yield Finding(
                    kind, BASELINE, f"{fact} moved: {_moved(then[fact], facts[fact])} (recorded with the same version)"
                )

    def verdict(self, cell: Cell, micrograph: str) -> str:
        """What the recorded run of the same version said of a cell that it could observe; "" if there is none."""
        line = self._line(cell, micrograph)
        return str(line["verdict"]) if line else ""

    def _line(self, cell: Cell, micrograph: str) -> dict[str, Any] | None:
        for env, line in self.cells.get(str(cell), []):
            if (
                line.get("micrograph") == micrograph
                and line.get("verdict") in ("pass", "xfail")
                and self._same(env, cell)
            ):
                return line
        return None

    def _same(self, env: Mapping[str, Any], cell: Cell) -> bool:
        keys = ["torch"]
        if cell.target == "cuda":
            keys += ["machine", "gpu"]
        elif cell.stage not in PORTABLE and not cell.target.startswith("sm_"):
            keys += ["machine", "cpu"]
        same = all(env.get(key) == self.env.get(key) for key in keys)
        if cell.stage is Stage.CAPTURE:  # guards follow Python's bytecode
            same &= _minor(str(env.get("python", ""))) == _minor(platform.python_version())
        return same and env.get("backends", {}).get(cell.backend) == self.env.get("backends", {}).get(cell.backend)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _settled(fact: str, value: Any) -> Any:
    """How many objects Dynamo guards by their identity depends on what else the process has compiled (it guards Python's
    builtins once for each name that they have there); that it does, does not."""
    plain = _plain(value)
    if fact == "guards" and "ID_MATCH" in plain:
        return {**plain, "ID_MATCH": "some"}
    return plain


def _plain(value: Any) -> Any:
    """As it looks after a trip through JSON."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _moved(then: Any, now: Any) -> str:
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        parts = [f"{k} {then.get(k, 0)} → {now.get(k, 0)}" for k in sorted({*then, *now}) if then.get(k) != now.get(k)]
        return ", ".join(parts[:6]) + (" …" if len(parts) > 6 else "")
    return f"{_short(then)} → {_short(now)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 80 else text[:79] + "…"
