"""What a release engineer reads: failures by stage and by cause, and what is new against an older record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from conformance.cell import Cell
from conformance.record import Run
from conformance.stage import STAGES
from conformance.upstream.failure import CAUSES
from conformance.upstream.outcome import COLLECTION
from conformance.upstream.results import PREFIX
from conformance.verdict import Verdict

SHOWN = ("pass", "fail", "error", "timeout", "xfail", "xpass", "unavailable")
FAILS = ("fail", "error", "timeout")
PASSES = ("pass", "xpass")
BAD = (*FAILS, "xpass")  # unexpected


@dataclass(frozen=True)
class Cause:
    """Failures with the same first line at the same rung: most likely one cause, whatever stages the tests belong
    to."""

    stages: tuple[str, ...]
    fails_from: str
    line: str
    tests: tuple[str, ...]


@dataclass
class Summary:
    """Counts and causes of a record of upstream tests."""

    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    causes: list[Cause] = field(default_factory=list)
    moved_names: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failed_files: int = 0  # that could not be imported, or died while they were

    @property
    def tests(self) -> int:
        return sum(sum(counter.values()) for counter in self.verdicts.values())

    @property
    def ran(self) -> int:
        return self.tests - sum(counter["unavailable"] for counter in self.verdicts.values())

    @property
    def unexpected(self) -> int:
        """Tests and whole files."""
        return sum(counter[verdict] for counter in self.verdicts.values() for verdict in BAD) + self.failed_files


@dataclass(frozen=True)
class Against:
    """A record held against an older one: tests by what became of them, and the same counted by stage."""

    tests: dict[str, list[str]]
    by_stage: dict[str, Counter[str]]
    causes: Counter[str] = field(default_factory=Counter)  # of what is new


KINDS = {
    "new": "fails, and did not before",
    "fixed": "passes, and failed before, expected or not",
    "still": "fails in both",
    "moved": "passed before; now only a private name is missing",
    "removed": "passed before; now a public name is missing",
    "gone": "passed before, and does not run now for another reason",
    "same": "passes in both",
}
NAMES = {"private_name": "moved", "public_name": "removed"}  # by cause


def upstream_cells(run: Run) -> dict[str, dict[str, Any]]:
    """The lines of a record that are upstream tests, by cell."""
    return {cell: line for cell, line in run.cells.items() if cell.split("/", 3)[-1].startswith(PREFIX)}


def summarize(cells: Mapping[str, Mapping[str, Any]]) -> Summary:
    found = Summary()
    groups: dict[tuple[str, str], list[tuple[Cell, str]]] = defaultdict(list)
    for name, line in cells.items():
        cell, verdict, facts = Cell.parse(name), str(line["verdict"]), line.get("observation") or {}
        if facts.get("cause") == "private_name":
            found.moved_names[str(facts.get("name"))] += 1
        if name.endswith(COLLECTION):
            found.failed_files += verdict in BAD
        elif "after" not in facts:
            found.verdicts[cell.stage.value][verdict] += 1
        if verdict in BAD:
            first = (line.get("findings") or [{}])[0].get("detail") or line.get("reason") or verdict
            start = str(facts.get("fails_from") or facts.get("cause") or verdict)
            groups[str(facts.get("rung") or start), str(first)].append((cell, start))
        elif verdict == Verdict.UNAVAILABLE.value:
            found.reasons[_family_of_reason(str(line.get("reason")))] += 1
    found.causes = sorted((_cause(first, tests) for (_, first), tests in groups.items()), key=_by_size)
    return found


def _cause(first: str, tests: list[tuple[Cell, str]]) -> Cause:
    stages = {cell.stage for cell, _ in tests}
    return Cause(
        tuple(stage.value for stage in STAGES if stage in stages),
        tests[0][1],
        first,
        tuple(cell.micrograph for cell, _ in tests),
    )


def _by_size(cause: Cause) -> tuple[Any, ...]:
    return -len(cause.tests), cause.stages, cause.fails_from, cause.line


def _family_of_reason(reason: str) -> str:
    """Reasons that name a test's own numbers or names count as one."""
    return "a private name moved" if " has no such " in reason else reason.split(", which", 1)[0][:100]


def against(cells: Mapping[str, Mapping[str, Any]], older: Mapping[str, Mapping[str, Any]]) -> Against:
    """Sort every test by what became of it. Tests are matched by name: the stage of one may have been mapped anew."""
    now, then = _by_test(cells), _by_test(older)
    tests: dict[str, list[str]] = {kind: [] for kind in KINDS}
    stages: dict[str, Counter[str]] = defaultdict(Counter)
    files = {test.partition("::")[0] for test in now}
    for test in sorted({*now, *then}):
        file = test.partition("::")[0]
        collection = f"{file}::{COLLECTION}"
        if test == collection or file not in files:  # a file that was not asked for says nothing
            continue
        kind = _kind(now.get(test), then.get(test), now.get(collection))
        if kind:
            tests[kind].append(test)
            stages[str((now.get(test) or then[test])["cell"]).partition("/")[0]][kind] += 1
    causes = Counter(str((now[test].get("observation") or {}).get("cause") or "unknown") for test in tests["new"])
    return Against(tests, dict(stages), causes)


def _kind(now: Mapping[str, Any] | None, then: Mapping[str, Any] | None, collection: Mapping[str, Any] | None) -> str:
    """Which of KINDS a test is; empty where nothing is to be told. `collection` is what became of the newer file."""
    before, after = (str(line["verdict"]) if line else "" for line in (then, now))
    cause = ((now or collection or {}).get("observation") or {}).get("cause")
    if before == Verdict.PASS.value and cause in NAMES:
        return NAMES[cause]
    if after in FAILS:
        return "still" if before in FAILS else "new"
    if after in PASSES:
        if before in (*FAILS, Verdict.XFAIL.value):
            return "fixed"
        return "same" if before in PASSES else ""
    return "" if before != Verdict.PASS.value or after == Verdict.XFAIL.value else "gone"


def _by_test(cells: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Lines by test; of a test that was stopped, the line of its own stage."""
    own = ((cell, line) for cell, line in cells.items() if "after" not in (line.get("observation") or {}))
    return {cell.split("/", 3)[3]: {**line, "cell": cell} for cell, line in own}


# --------------------------------------------------------------------------------------------- for the terminal


def render(found: Summary, compared: Against | None = None, most: int = 20) -> RenderableType:
    parts: list[RenderableType] = [_stage_table(found)]
    if found.causes:
        parts += [Text(), _cause_table(found, most)]
    if found.moved_names:
        names = ", ".join(f"{name} ×{count}" for name, count in found.moved_names.most_common(8))
        parts.append(
            Text(f"\nprivate names not in this version ({sum(found.moved_names.values())} tests and files): {names}")
        )
    if found.reasons:
        told = "; ".join(f"{count} × {reason}" for reason, count in found.reasons.most_common(8))
        parts.append(Text(f"\nunavailable: {told}", style="dim"))
    if compared:
        parts += [Text(), _against_table(compared, most)]
    return Group(*parts)


def _stage_table(found: Summary) -> Table:
    table = Table("stage", *SHOWN, title=f"{found.tests} tests, {found.ran} run", title_justify="left", box=None)
    for stage in STAGES:
        if counter := found.verdicts.get(stage.value):
            table.add_row(stage.value, *(str(counter[verdict] or "") for verdict in SHOWN))
    return table


def _cause_table(found: Summary, most: int) -> Table:
    title = f"{len(found.causes)} causes of {found.unexpected} failures of tests and files (same first line, same rung)"
    table = Table(
        "tests", "belongs to", "fails from", "first line", "for one", title=title, title_justify="left", box=None
    )
    for cause in found.causes[:most]:
        start = CAUSES.get(cause.fails_from, cause.fails_from)
        table.add_row(
            str(len(cause.tests)),
            ", ".join(cause.stages),
            start,
            Text(cause.line[:140]),
            Text(cause.tests[0].removeprefix(PREFIX)),
        )
    if len(found.causes) > most:
        table.add_row("", "", "", f"and {len(found.causes) - most} more causes", "")
    return table


def _against_table(compared: Against, most: int) -> RenderableType:
    table = Table("stage", *KINDS, title="against the older record", title_justify="left", box=None)
    for stage in STAGES:
        if counter := compared.by_stage.get(stage.value):
            table.add_row(stage.value, *(str(counter[kind] or "") for kind in KINDS))
    legend = Text("; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items()), style="dim")
    new = compared.tests["new"]
    causes = "; ".join(f"{count} × {CAUSES.get(cause, cause)}" for cause, count in compared.causes.most_common())
    told = [Text(f"what is new by cause: {causes}")] if causes else []
    lines = [*told] + [Text(f"new: {test.removeprefix(PREFIX)}") for test in new[:most]]
    return Group(table, legend, *lines, *([Text(f"and {len(new) - most} more")] if len(new) > most else []))


def show(found: Summary, compared: Against | None = None, console: Console | None = None) -> None:
    (console or Console()).print(render(found, compared))
