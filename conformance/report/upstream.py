"""Public reports and what each release does with them: from lines that carry `"upstream": ["pytorch#198094"]`."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from conformance import sanitize
from conformance.report.matrix import Column, Entry, Key, Matrix
from conformance.report.style import stage_rank

ALIVE, FIXED, PASSES, UNSEEN = "alive", "fixed", "passes", "not observable"
MEANINGS = {
    ALIVE: "a cell of it fails in this release",
    FIXED: "it passes, and an older release of the same series fails",
    PASSES: "it passes, and no release of this series was seen to fail",
    UNSEEN: "the stage that shows it cannot be observed here",
}
SIGNS = {ALIVE: "✗", FIXED: "✓", PASSES: "○", UNSEEN: "·"}
FAILS = frozenset({"fail", "xfail", "error", "timeout", "fallback"})
REPOSITORIES = {
    "pytorch": "pytorch/pytorch",
    "torch_tensorrt": "pytorch/TensorRT",
    "tensorrt": "pytorch/TensorRT",
    "tensorrt-llm": "NVIDIA/TensorRT-LLM",
    "triton": "triton-lang/triton",
    "vllm": "vllm-project/vllm",
}
# The compiler that a repository's reports are about. Another compiler may fail the same micrograph for a reason of its own.
COMPILERS = {
    "pytorch/pytorch": "inductor",
    "pytorch/TensorRT": "torch_tensorrt",
    "NVIDIA/TensorRT": "torch_tensorrt",
    "NVIDIA/TensorRT-LLM": "autodeploy",
}
_NAME = re.compile(r"((?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*)#([0-9]{1,9})")


@dataclass(frozen=True)
class Sighting:
    """What one release does with a report. key: the cell that shows it."""

    state: str
    key: Key
    entry: Entry


@dataclass
class Report:
    name: str
    title: str = ""
    micrographs: list[str] = field(default_factory=list)
    sightings: dict[Column, Sighting] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the report is; empty where its name does not tell."""
        found = _NAME.fullmatch(self.name)
        repository = _repository(self.name)
        return f"https://github.com/{repository}/issues/{found[2]}" if found and "/" in repository else ""

    @property
    def shown(self) -> Sighting:
        """The newest release that has the defect; the newest of all where none has."""
        alive = [one for one in self.sightings.values() if one.state == ALIVE]
        return (alive or list(self.sightings.values()))[-1]

    @property
    def stage(self) -> str:
        """The stage at which the defect was found; empty where no release shows it."""
        return self.shown.key.stage if self.shown.state == ALIVE else ""


def _repository(name: str) -> str:
    found = _NAME.fullmatch(name)
    return REPOSITORIES.get(found[1].lower(), found[1]) if found else ""


def _is_about(name: str, backend: str) -> bool:
    """Is the report about this backend's compiler? One of a repository that is not known is about any."""
    compiler = COMPILERS.get(_repository(name), backend)
    return backend == compiler or backend.startswith(f"{compiler}_")


def reports(matrix: Matrix) -> list[Report]:
    """Every report that a line names, with its state in each column that has the micrograph and is of the report's compiler."""
    lines: dict[str, list[tuple[Key, Entry]]] = defaultdict(list)
    for key, entry in matrix.entries.items():
        for name in map(sanitize.name, entry.line.get("upstream", ())):
            if _is_about(name, key.column.backend):
                lines[name].append((key, entry))
    return [_report(name, found, matrix) for name, found in sorted(lines.items(), key=lambda item: _order(item[0]))]


def _order(name: str) -> tuple[str, int, str]:
    found = _NAME.fullmatch(name)
    return (found[1], int(found[2]), name) if found else ("~", 0, name)


def _report(name: str, lines: list[tuple[Key, Entry]], matrix: Matrix) -> Report:
    titles = [sanitize.name(entry.line.get("title")) for _, entry in lines if entry.line.get("title")]
    report = Report(name, titles[0] if titles else "", sorted({key.micrograph for key, _ in lines}))
    columns: dict[Column, list[tuple[Key, Entry]]] = defaultdict(list)
    for key, entry in lines:
        columns[key.column].append((key, entry))
    # The stages at which some release shows the defect; before any does, the answers themselves.
    telling = {key.stage for key, entry in lines if _shows(entry)} or {"runtime"}
    for series in matrix.series():
        failed_before = False
        for column in series:
            if column in columns:
                sighting = _sighting(columns[column], telling, failed_before)
                failed_before |= sighting.state == ALIVE
                report.sightings[column] = sighting
    return report


def _shows(entry: Entry) -> bool:
    """Does the cell fail, and not for what is known to be another defect: an expectation that links to none of its reports?"""
    link = sanitize.name(entry.line.get("url", "")).rstrip("/")
    known = entry.verdict == "xfail" and bool(link)
    numbers = {name.rpartition("#")[2] for name in map(sanitize.name, entry.line.get("upstream", ()))}
    return entry.verdict in FAILS and (not known or link.rpartition("/")[2] in numbers)


def _sighting(lines: list[tuple[Key, Entry]], telling: set[str], failed_before: bool) -> Sighting:
    lines = sorted(lines, key=lambda pair: (stage_rank(pair[0].stage), pair[0].micrograph))
    failing = [pair for pair in lines if _shows(pair[1])]
    shown = [pair for pair in lines if pair[0].stage in telling]
    unseen = [pair for pair in shown if pair[1].verdict not in ("pass", "xpass")]
    if failing:
        return Sighting(ALIVE, *failing[0])
    if unseen or not shown:
        return Sighting(UNSEEN, *(unseen or lines)[0])
    return Sighting(FIXED if failed_before else PASSES, *shown[0])
