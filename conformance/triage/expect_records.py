"""Expectations made from recorded runs: what failed in which releases, as entries of `fixtures/expectations/*.toml`.

Only cells that the records measured are touched. Of an entry that still matches, the words a person wrote (why, link,
comment) are kept and the versions are brought up to date; an entry whose cells pass in every record is removed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from conformance import expectations
from conformance.errors import UsageError
from conformance.ops.words import operator_and_dtype, script_stem
from conformance.record import Run, read
from conformance.record_writer import without_folders
from conformance.verdict import Verdict

BAD = {"fail", "error", "fallback", "timeout", "xfail"}
GOOD = {"pass", "xpass"}
Link = str | Path  # `url = "…"` or `repro = "…"` for all entries; or the folder with a script for each operator
DESCRIBED = re.compile(r"/sm_\d+\w*/")  # an entry is of every described GPU: `/sm_*/`


@dataclass(frozen=True)
class Entry:
    """One `[[expect]]`: the comment above it, its cells, and the rest."""

    cells: tuple[str, ...]
    fact: str  # `kind = "…"` or `verdict = "…"`
    when: str
    link: str  # `url = "…"` or `repro = "…"`
    why: str
    comment: str = ""

    def text(self) -> str:
        names = self.cells
        cell = (
            json.dumps(names[0])
            if len(names) == 1
            else "[\n" + "".join(f"    {json.dumps(name)},\n" for name in names) + "]"
        )
        lines = [
            self.comment.rstrip(),
            "[[expect]]",
            f"cell = {cell}",
            self.fact,
            f"when = {json.dumps(self.when)}" if self.when else "",
        ]
        return (
            "\n".join(line for line in (*lines, self.link, f"why = {json.dumps(self.why, ensure_ascii=False)}") if line)
            + "\n"
        )


@dataclass
class History:
    """What became of one cell in the releases that were recorded, on each machine."""

    package: str  # whose version counts: `torch`, or the backend's own
    facts: dict[tuple[Version, str], str] = field(default_factory=dict)  # release and machine → the fact; "": it passed
    reasons: dict[str, str] = field(default_factory=dict)  # fact → what the newest release showed
    links: tuple[str, ...] = ()

    def conditions(self, fact: str) -> list[str]:
        """Where this fact was measured. Machines are named only where they disagree about a release: code for another processor can lack a
        defect."""
        said: dict[Version, set[str]] = {}
        for (release, _), one in self.facts.items():
            said.setdefault(release, set()).add(one)
        if all(len(facts) == 1 for facts in said.values()):
            return self._spans(fact, {release: facts.pop() for release, facts in said.items()})
        return [
            f"{span}; machine == {machine}"
            for machine in sorted({machine for _, machine in self.facts})
            for span in self._spans(fact, {one[0]: its for one, its in self.facts.items() if one[1] == machine})
        ]

    def _spans(self, fact: str, facts: Mapping[Version, str]) -> list[str]:
        """The versions with this fact, as conditions. Releases in which the cell was not seen are passed over."""
        found: list[str] = []
        first: Version | None = None
        releases = sorted(facts)
        for release in releases:
            if facts[release] == fact:
                first = first or release
            elif first:
                found.append(
                    self._span(
                        first, f"<{_minor(release)}" if _minor(release) != _minor(first) else f"<{release.public}"
                    )
                )
                first = None
        if first:
            newest = releases[-1]
            found.append(self._span(first, f"<{newest.major}.{newest.minor + 1}"))
        return found

    def _span(self, first: Version, below: str) -> str:
        least = f"{_minor(first)}.dev0" if first.is_prerelease else _minor(first)  # 1.3.0rc17 is older than 1.3
        return f"{self.package}>={least},{below}"


def _minor(version: Version) -> str:
    return f"{version.major}.{version.minor}"


# -------------------------------------------------------------------------------------------------------- from records


def histories(records: Iterable[Path], globs: tuple[str, ...] = ("*",)) -> dict[str, History]:
    """What the records say of each cell whose micrograph matches one of the globs."""
    found: dict[str, History] = {}
    runs = sorted((read(path) for path in records), key=lambda run: _torch(run))
    for run in runs:
        for cell, line in run.cells.items():
            name = DESCRIBED.sub("/sm_*/", cell)
            _, backend, target, micrograph = name.split("/", 3)
            fact = fact_of(line)
            if fact is None or not any(fnmatchcase(micrograph, glob) for glob in globs):
                continue
            package, version = _version(run, backend)
            history = found.setdefault(name, History(package))
            release = version, str(run.header["env"].get("machine", "")) if target == "cpu" else ""
            history.facts[release] = fact or history.facts.get(release, "")  # of two described GPUs, what failed
            history.links = tuple(line.get("upstream", ())) or history.links
            if fact:
                history.reasons[fact] = _reason(line)
    return found


def _torch(run: Run) -> Version:
    return Version(str(run.header["env"]["torch"]).split("+")[0])


def _version(run: Run, backend: str) -> tuple[str, Version]:
    versions = run.header["env"].get("backends", {}).get(backend, {})
    name = backend if backend in versions else "torch"
    said = str(versions.get(name, run.header["env"]["torch"]))
    try:
        return name, Version(re.split(r"[+ ]", said)[0])
    except InvalidVersion:
        raise UsageError(
            f"{run.path} says {said!r} for {name}: no expectation can be bound to that; leave it out"
        ) from None


def fact_of(line: Mapping[str, Any]) -> str | None:
    """How a cell failed, in the words of an entry; "" where it passed, None where it was not seen."""
    verdict = line["verdict"]
    if verdict in GOOD or (line.get("unexpected") is False and verdict == Verdict.FALLBACK.value):
        return ""  # an operator that breaks the graph is none that fails
    kinds = sorted({finding["kind"] for finding in line.get("findings", ())})
    if verdict not in BAD:
        return None
    if (
        verdict == "xfail" and not kinds
    ):  # expected although nothing was found: the backend left the work to something else
        return f'verdict = "{Verdict.FALLBACK.value}"'
    if kinds and verdict in ("fail", "error", "xfail") and kinds != ["timeout"]:
        return f'kind = "{" ".join(kinds)}"'
    return f'verdict = "{Verdict.TIMEOUT.value if kinds == ["timeout"] else verdict}"'


def _reason(line: Mapping[str, Any]) -> str:
    """The first finding in one line, without the numbers that differ from machine to machine."""
    details = [finding["detail"] for finding in line.get("findings", ())] or [line.get("reason", "")]
    said = (str(details[0]) or str(line["verdict"])).splitlines()[0]
    said = re.sub(r"^(first call|play \d+): (call: )?", "", said).partition("; largest error")[0]
    said = without_folders(said)  # a record of an older suite may hold them
    return said if len(said) <= 160 else said[:159] + "…"


def link_of(upstream: str) -> str:
    """`pytorch/pytorch#198094` → its address."""
    repository, _, number = upstream.partition("#")
    owner = repository if "/" in repository else f"pytorch/{repository}"
    return f'url = "https://github.com/{owner}/issues/{number}"'


# -------------------------------------------------------------------------------------------------------------- a file


def parse(text: str) -> tuple[str, list[Entry], str]:
    """What stands at the head of a file; its entries, each with the comment directly above it; and its other tables
    (`[[known]]`), as they are written."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("[["):
            above = blocks[-1]
            start = len(above)
            while start and above[start - 1].startswith("#"):
                start -= 1
            blocks.append([*above[start:], line])
            del above[start:]
        else:
            blocks[-1].append(line)
    head, *tables = ("\n".join(block) for block in blocks)
    mine = [table for table in tables if "\n[[expect]]" in f"\n{table}"]
    others = "\n\n".join(table.strip() for table in tables if table not in mine)
    return head.strip(), [_parsed(table) for table in mine], others


def _parsed(block: str) -> Entry:
    comment, _, body = block.partition("[[expect]]")
    data = tomllib.loads(body)
    cells = data["cell"] if isinstance(data["cell"], list) else [data["cell"]]
    fact = next(f'{key} = "{data[key]}"' for key in ("kind", "verdict") if key in data)
    link = next(f"{key} = {json.dumps(data[key])}" for key in ("url", "repro") if key in data)
    return Entry(tuple(cells), fact, data.get("when", ""), link, data["why"], comment.strip())


def render(head: str, entries: Iterable[Entry], others: str = "") -> str:
    parts = ([head + "\n"] if head else []) + [entry.text() for entry in entries] + ([others + "\n"] if others else [])
    return "\n".join(parts)


def update(text: str, measured: Mapping[str, History], link: Link = "", why: str = "") -> tuple[str, list[str]]:
    """The file's text, brought up to date, and the cells that fail and have neither a report nor a link."""
    head, old, others = parse(text)
    wanted = {
        (cell, fact, span)
        for cell, history in measured.items()
        for fact in history.reasons
        for span in history.conditions(fact)
    }
    kept: list[Entry] = []
    for entry in old:
        mine = [cell for cell in entry.cells if cell in measured and _measured(entry, measured[cell])]
        still = tuple(cell for cell in entry.cells if cell not in mine)
        if still:
            kept.append(replace(entry, cells=still))
        for span in sorted({span for cell, fact, span in wanted if cell in mine and fact == entry.fact}):
            cells = tuple(cell for cell in mine if (cell, entry.fact, span) in wanted)
            kept.append(replace(entry, cells=cells, when=entry.when if _same(entry, span, cells, measured) else span))
            wanted -= {(cell, entry.fact, span) for cell in cells}
    made, linkless = _made(wanted, measured, old, link, why)
    return render(head, [*kept, *made], others), linkless


def _measured(entry: Entry, history: History) -> bool:
    """Was the cell seen in one of the releases that the entry is about?"""
    return any(_holds(entry.when, history.package, *release) for release in history.facts)


def _same(entry: Entry, span: str, cells: tuple[str, ...], measured: Mapping[str, History]) -> bool:
    """Does the condition that stands there say the same of every release that was recorded?"""
    seen = [(history.package, *release) for cell in cells for history in (measured[cell],) for release in history.facts]
    return all(_holds(entry.when, *one) == _holds(span, *one) for one in seen)


def _holds(when: str, package: str, version: Version, machine: str) -> bool:
    known = {package: version.public, "machine": machine}
    return expectations.Expectation("", "", "", when, "", "", "the entry").holds(known)


def _made(
    wanted: set[tuple[str, str, str]], measured: Mapping[str, History], old: list[Entry], link: Link, why: str
) -> tuple[list[Entry], list[str]]:
    """New entries: cells that fail in one way, in the same releases, for the same report, are one entry; operators are told apart."""
    groups: dict[tuple[str, str, str, str, str], list[str]] = {}
    linkless: list[str] = []
    for cell, fact, span in sorted(wanted):
        history = measured[cell]
        known = _alike(cell, fact, old)
        its = link if isinstance(link, str) else _script(link, cell, fact)
        its = its or (known.link if known else link_of(history.links[0]) if history.links else "")
        said = why or (known.why if known and "crash" not in fact else "")  # what a crash says is each target's own
        if its:
            groups.setdefault((_operator(cell), its, fact, span, said), []).append(cell)
        else:
            linkless.append(cell)
    made = [
        Entry(tuple(cells), fact, span, its, said or measured[cells[0]].reasons[fact])
        for (_, its, fact, span, said), cells in sorted(groups.items())
    ]
    return made, sorted(set(linkless))


def _operator(cell: str) -> str:
    """The operator that a cell of `conformance ops` is about; empty for a micrograph's."""
    found = operator_and_dtype(cell.split("/", 3)[3])
    return found[0] if found else ""


def _script(folder: Path, cell: str, fact: str) -> str:
    """The script of a folder that shows what became of an operator: `put_wrong_metadata.py`, as `conformance ops --repros` names it."""
    kinds = fact.partition('"')[2].rstrip('"').split()
    names = [f"{script_stem(_operator(cell), kind)}.py" for kind in kinds]
    return next((f'repro = "{folder / name}"' for name in names if (folder / name).exists()), "")


def _alike(cell: str, fact: str, entries: list[Entry]) -> Entry | None:
    """An entry that says of the same micrograph that it fails in the same way, on another target or at another stage: the link and the
    words that a person wrote there hold here as well."""

    def likeness(name: str) -> int:
        stage, backend, _, micrograph = name.split("/", 3)
        its_stage, its_backend, _, its_micrograph = cell.split("/", 3)
        if (backend, micrograph) != (its_backend, its_micrograph):
            return 0
        return 2 if stage == its_stage else 1

    found = [(max(likeness(name) for name in entry.cells), entry) for entry in entries if entry.fact == fact]
    best = max(found, key=lambda one: one[0], default=(0, None))
    return best[1] if best[0] else None


# ------------------------------------------------------------------------------------------------------------ a folder


def changes(
    records: Iterable[Path], folder: Path, globs: tuple[str, ...], link: Link = "", why: str = ""
) -> tuple[dict[Path, str], list[str]]:
    """The files that change, with their new text, and the cells that were left out for want of a link."""
    measured = histories(records, globs)
    if not measured:
        raise UsageError(f"the records hold no cell of a micrograph {' or '.join(globs)} that was seen")
    homes = {cell: home for cell, home in _homes(folder).items() if cell in measured}
    files: dict[Path, dict[str, History]] = {}
    for cell, history in measured.items():
        if history.reasons or cell in homes:
            files.setdefault(homes.get(cell) or folder / f"{_file(cell)}.toml", {})[cell] = history
    changed: dict[Path, str] = {}
    linkless: list[str] = []
    for file, its in sorted(files.items()):
        before = file.read_text("utf-8") if file.exists() else ""
        after, without = update(before, its, link, why)
        linkless += without
        if after.strip() != before.strip():
            changed[file] = after
    return changed, linkless


def _homes(folder: Path) -> dict[str, Path]:
    """The file that names a cell already."""
    return {
        cell: file
        for file in sorted(folder.glob("*.toml"))
        for entry in parse(file.read_text("utf-8"))[1]
        for cell in entry.cells
    }


def _file(cell: str) -> str:
    """A file a class of reports (`upstream.mutation.…` → `upstream_mutation`), and one a backend for all else."""
    _, backend, _, micrograph = cell.split("/", 3)
    if _operator(cell):
        return backend
    family = micrograph.rsplit(".", 1)[0]
    return family.replace(".", "_") if "." in family else backend
