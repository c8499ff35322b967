"""Defects that are known already. What one of them explains is counted and told in one line; it is no new finding.

    [[known]]
    backend = "torch_tensorrt*"                  # a glob
    kind = "crash"
    detail = "unsupported input data type"       # found in what was said (a regular expression); absent: anything
    graph = "inputs:.*\\bint16"                   # found in the description of graph and call, see `described`; absent: any
    when = "torch_tensorrt>=2.11,<2.15"          # as in expectations
    avoid = true                                 # it costs the process (a GPU's context, say): do not run what `graph` describes
    repro = "reports/repros/….py"                # or: url = "https://github.com/…"
    why = "an int16 input is refused"

They stand in `fixtures/expectations/*.toml`, beside what the suite expects of its micrographs, which is known as well.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypedDict

from conformance import environment, expectations, paths
from conformance.backends.base import Backend
from conformance.errors import UsageError, unknown
from conformance.expectations import Expectation
from conformance.files import mismatch, read_toml
from conformance.fuzz.example import Call
from conformance.fuzz.strategies import ops
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.oracle import Difference
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.verdict import Kind

HOME = paths.data() / "fixtures" / "expectations"
# A repeated group that itself repeats without bound, as `(a+)+`: it takes years to find out that it does not match.
RUNAWAY = re.compile(r"\((?:[^()\\]|\\.)*[*+](?:[^()\\]|\\.)*\)(?:[*+]|\{\d+,)")


class Entry(TypedDict, total=False):
    """An entry as it is written; `File` is a file of them."""

    backend: str
    kind: str
    detail: str
    graph: str
    when: str
    avoid: bool
    repro: str
    url: str
    why: str


class File(TypedDict, total=False):
    known: list[Entry]


KEYS = frozenset(Entry.__annotations__)


@dataclass(frozen=True)
class Known:
    backend: str
    kind: str
    detail: str
    graph: str
    when: str
    link: str
    why: str
    avoid: bool = False

    def explains(self, difference: Difference, text: str) -> bool:
        said = re.search(self.detail, str(difference), re.S) and re.search(self.graph, text, re.S)
        return difference.kind.value in self.kind.split() and said is not None

    def __str__(self) -> str:
        return f"{self.why} ({self.link})"


def load(folder: Path = HOME) -> list[Known]:
    found = []
    for file in sorted(folder.glob("*.toml")):
        data, _ = read_toml(file)
        if problem := mismatch(data, File):
            raise UsageError(f"{file}: {problem}")
        entries = data.get("known", [])
        found += [_entry(entry, f"{file.name} entry {number}") for number, entry in enumerate(entries, 1)]
    return found


def _entry(data: dict[str, Any], source: str) -> Known:
    for key in data:
        if key not in KEYS:
            raise unknown(f"key in {source}", key, KEYS)
    link = data.get("repro") or data.get("url")
    if not link or not data.get("why") or not data.get("backend"):
        raise UsageError(f"{source}: a known defect needs a backend, a why, and a repro or a url")
    for kind in data.get("kind", "").split() or [""]:
        if kind not in {k.value for k in Kind}:
            raise unknown(f"kind in {source}", kind, [k.value for k in Kind])
    for key in ("detail", "graph"):
        pattern = data.get(key, "")
        if len(pattern) > 500 or RUNAWAY.search(pattern):
            raise UsageError(
                f"{source}: {key} is a regular expression that may not end: at most 500 characters, and no (a+)+"
            )
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{source}: {key} is no regular expression: {error}") from None
    detail, graph, when = (data.get(key, "") for key in ("detail", "graph", "when"))
    return Known(data["backend"], data["kind"], detail, graph, when, link, data["why"], bool(data.get("avoid")))


@dataclass
class Register:
    """What is known of one backend, in the versions that are here."""

    entries: Sequence[Known]
    expected: Sequence[Expectation]
    backend: str
    target: str
    met: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, backend: Backend, target: Target) -> Register:
        versions = {**environment.versions(), **backend.versions()}
        holds = lambda when: Expectation("", "", "", when, "", "", "fixtures/expectations").holds(versions)
        entries = [e for e in load() if fnmatchcase(backend.name, e.backend) and holds(e.when)]
        return cls(entries, [e for e in expectations.load().entries if e.holds(versions)], backend.name, target.name)

    def explains(
        self, micrograph: type[Micrograph], source: str, call: Call | None, differences: Sequence[Difference]
    ) -> bool:
        """Is each difference one that is known?"""
        text = described(micrograph, source, call)
        reasons = [self._reason(micrograph, text, difference) for difference in differences]
        if not reasons or not all(reasons):
            return False
        self.met.update({str(reason) for reason in reasons})
        return True

    def avoids(self, micrograph: type[Micrograph], source: str, call: Call) -> bool:
        """Is this what costs the process?"""
        entries = [entry for entry in self.entries if entry.avoid]
        text = f"{described(micrograph, source, call)}\ntarget: {self.target}" if entries else ""
        for entry in entries:
            if re.search(entry.graph, text, re.S):
                self.met[f"not run: {entry}"] += 1
                return True
        return False

    def _reason(self, micrograph: type[Micrograph], text: str, difference: Difference) -> str:
        for entry in self.entries:
            if entry.explains(difference, text):
                return str(entry)
        cells = [
            f"{stage.value}/{self.backend}/{self.target}/{micrograph.name()}"
            for stage in STAGES
            if stage is not Stage.CACHE
        ]
        for expected in self.expected:
            kinds = expected.kind.split() or [k.value for k in Kind] * (expected.verdict == "fail")
            if difference.kind.value in kinds and any(fnmatchcase(cell, expected.cell) for cell in cells):
                return f"{expected.why} ({expected.url})"
        return ""


def described(micrograph: type[Micrograph], source: str, call: Call | None) -> str:
    """The graph's own lines, the ops that eager runs, and what it was given: what `graph` is looked for in."""
    body = source.split("def forward", 1)[-1] if source else _source(micrograph)
    dtypes = [str(spec.dtype)[6:] for spec in micrograph.inputs if isinstance(spec, Tensor)]
    said: dict[str, Any] = {"ops": sorted(ops(micrograph)), "inputs": dtypes}  # type: ignore[arg-type]
    if call is not None:
        said |= {
            "sizes": list(call.dims.values()),
            "dtype": [call.dtype],
            "layouts": [given.layout for given in call.given],
            "values": [given.values for given in call.given],
            "shared": [index for index, given in enumerate(call.given) if given.shares is not None],
        }
    return "\n".join([body, *(f"{name}: {' '.join(map(str, values))}" for name, values in said.items())])


def _source(micrograph: type[Micrograph]) -> str:
    try:
        return inspect.getsource(micrograph.forward)
    except (OSError, TypeError):
        return ""
