"""The end of a sweep: the page, the matrix, the ranked diff of each two neighbouring versions, the history, and a summary of it all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import UsageError
from conformance.record import is_unexpected
from conformance.report import matrix_document, moved
from conformance.report.document import Block, Heading, Paragraph, Span, Table, markdown
from conformance.report.history import History, Step, trace
from conformance.report.load import Loaded, load
from conformance.report.matrix import combine
from conformance.report.page import write_page
from conformance.report.style import counted
from conformance.sweep.columns import Column
from conformance.sweep.progress import duration
from conformance.verdict import Verdict

SUMMARY, PAGE, MATRIX, HISTORY, DIFFS = "summary.md", "matrix.html", "matrix.md", "history.md", "diffs"
ROOM = 900_000  # characters; a step's summary on GitHub has at most 1 MiB


@dataclass
class Ending:
    """What a sweep came to. problems: a line for each column that did not come to its end, or of which nothing could be observed."""

    columns: Sequence[Column]
    folder: Path
    seconds: float
    slots: int
    records: list[Loaded] = field(default_factory=list)
    history: History | None = None
    problems: list[str] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)

    def unexpected(self) -> int:
        return sum(is_unexpected(line) for run in self.records for line in run.cells.values())

    def code(self, fail_on: str | None) -> int:
        """2 where a column has a problem; 1 for what is unexpected or, with --fail-on, for what came between two neighbours."""
        if self.problems:
            return 2
        if fail_on is None:
            return 1 if self.unexpected() or any(_other_failures(self.columns)) else 0
        return 1 if any(step.diff.failing(fail_on) for step in self.steps()) else 0

    def steps(self) -> list[Step]:
        return self.history.steps if self.history else []


def end(columns: Sequence[Column], folder: Path, seconds: float, slots: int, allow_unavailable: bool) -> Ending:
    """Read the records back and write everything that is made of them, beside them."""
    ending = Ending(columns, folder, seconds, slots)
    ending.problems += [f"{column.name}: {column.problem}" for column in columns if column.state == "failed"]
    files = [file for column in columns if (file := column.record) is not None and file.exists()]
    if files:
        ending.records = load(files)
        matrix = combine(ending.records)
        ending.history = trace(matrix)
        if not allow_unavailable:
            ending.problems += _nothing_observed(ending.records)
        _write(ending, PAGE, lambda path: write_page(matrix, path, "Sweep"))
        _write(ending, MATRIX, _text(matrix_document.matrix_blocks(matrix, "Sweep")))
        _write(ending, HISTORY, _text(moved.history_blocks(ending.history)))
        for step in ending.history.steps:
            _write(ending, f"{DIFFS}/{step_name(step)}.md", _text(moved.diff_blocks(step.diff)))
    _write(ending, SUMMARY, _text(summary_blocks(ending), ROOM))
    return ending


def step_name(step: Step) -> str:
    """A file name: `inductor-cpu-2.11.0-2.12.0`."""
    parts = [step.old.backend, step.old.target, step.old.machine, step.old.version, step.new.version]
    return re.sub(r"[^\w.+-]+", "_", "-".join(part for part in parts if part))


def summary_blocks(ending: Ending) -> Iterator[Block]:
    yield Heading("Sweep", 1)
    cells = sum(len(run.cells) for run in ending.records)
    took = f"{duration(ending.seconds)} on {counted(ending.slots, 'slot')}"
    yield Paragraph(
        f"{counted(cells, 'cell')} in {counted(len(ending.columns), 'column')}, {ending.unexpected()} unexpected, {took}"
    )
    for problem in ending.problems:
        yield Paragraph(Span(problem, "", 400), "!")
    yield Table(
        ("column", "made of", "lines", "unexpected", "state"),
        [_row(one, ending) for one in ending.columns],
        frozenset({2, 3}),
    )
    if ending.history is not None and ending.history.steps:
        yield Heading("What moved between neighbours", 2)
        yield Paragraph(ending.history.sentence())
        for step in ending.history.steps:
            yield Heading(f"{step.old.label} → {step.new.version}", 3)
            yield from (block for block in moved.diff_blocks(step.diff) if not isinstance(block, Heading))


def _row(column: Column, ending: Ending) -> list[str]:
    there = next((run for run in ending.records if run.path == column.record), None)
    lines = len(there.cells) if there else column.had + column.lines
    bad = sum(map(is_unexpected, there.cells.values())) if there else column.unexpected
    return [
        column.name,
        column.environment.made_of(),
        f"{lines}/{column.total}",
        str(bad),
        ("stopped" if lines else "not run") if column.problem else "complete",
    ]


def _nothing_observed(records: Iterable[Loaded]) -> Iterator[str]:
    """A backend of which nothing could be observed is no success: green would say that it was tested."""
    for run in records:
        reasons: dict[str, set[str]] = {}
        seen: set[str] = set()
        for name, line in run.cells.items():
            column = "/".join(name.split("/")[1:3])
            if line["verdict"] == Verdict.UNAVAILABLE.value:
                reasons.setdefault(column, set()).add(line["reason"])
            else:
                seen.add(column)
        for column in sorted(reasons.keys() - seen):
            yield f"{run.label}: nothing of {column} could be observed: {min(reasons[column])[:200]} (--allow-unavailable allows it)"


def _other_failures(columns: Iterable[Column]) -> Iterator[bool]:
    return (column.unexpected > 0 for column in columns if column.record is None)


def _text(blocks: Iterable[Block], limit: int | None = None) -> Callable[[Path], object]:
    return lambda path: path.write_text(markdown(blocks, limit), encoding="utf-8")


def _write(ending: Ending, name: str, write: Callable[[Path], object]) -> None:
    path = ending.folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
        ending.written.append(path)
    except (OSError, UsageError) as error:
        ending.problems.append(f"cannot write {path}: {getattr(error, 'strerror', None) or error}")
