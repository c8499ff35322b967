"""The README's table of recorded runs, made from the records themselves: `python -m conformance.report.readme`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import click

from conformance import record
from conformance.errors import UsageError
from conformance.ops.coverage import coverage
from conformance.ops.words import WORDS
from conformance.report.document import Block, Paragraph, Table, markdown
from conformance.report.load import Loaded, load
from conformance.report.matrix import Column, Matrix, combine
from conformance.report.style import counted
from conformance.report.totals import Total
from conformance.report.upstream import SIGNS, Report, reports

BEGIN = "<!-- records: made by `python -m conformance.report.readme`; do not edit by hand -->"
END = "<!-- records: end -->"


def summary(matrix: Matrix) -> Iterator[Block]:
    """How many micrographs and stages, what is unexpected, and a row a series (versions with equal totals together)."""
    unexpected = sum(record.is_unexpected(entry.line) for entry in matrix.entries.values())
    found = f"{counted(unexpected, 'cell')} unexpected" if unexpected else "nothing unexpected"
    sizes = f"{counted(len(matrix.rows), 'micrograph')}, {counted(len(matrix.stages), 'stage')}"
    records, cells = counted(len(matrix.runs), "record"), counted(len(matrix.entries), "cell")
    yield Paragraph(f"{records} of {sizes}: {cells}, {found}.")
    head = ["backend", "target", "recorded on", "versions", "pass", "and the rest"]
    yield Table(head, list(_rows(matrix)), frozenset({4}))
    found_reports = reports(matrix)
    if found_reports:
        yield Paragraph(f"{counted(len(found_reports), 'public report')}, measured in each release:")
        yield Table(["backend", "target", "recorded on", "version", *SIGNS], list(_reports(matrix, found_reports)))


def operators(runs: Iterable[Loaded]) -> Iterator[Block]:
    """A row a sweep of operators: in how many pairs of an operator and a dtype it fares how."""
    rows = []
    for run in runs:
        table = coverage([run])
        first = table.columns[0]
        words = Counter(entry.word for entry in table.entries.values())
        where = [first.backend, first.target, " ".join(filter(None, run.machine)), first.version.partition("+")[0]]
        rows.append([*where, f"{len(table.rows):,}", *(f"{words[word]:,}" for word in WORDS)])
    if rows:
        yield Paragraph(
            "Every operator of torch's own database in every dtype, each of them in reports/ops/operators.md:"
        )
        head = ["backend", "target", "recorded on", "version", "operators", *WORDS]
        yield Table(head, rows, frozenset(range(4, len(head))))


def _reports(matrix: Matrix, found: list[Report]) -> Iterator[list[str]]:
    """A row a release: how many of the reports are alive in it, fixed, never seen, or not observable."""
    machines = _machines(matrix)
    for column in matrix.columns:
        states = Counter(report.sightings[column].state for report in found if column in report.sightings)
        if states:
            where = [column.backend, column.target, machines[column], column.version]
            yield [*where, *(f"{states[state]}" for state in SIGNS)]


def _machines(matrix: Matrix) -> dict[Column, str]:
    return {key.column: " ".join(filter(None, entry.run.machine)) for key, entry in matrix.entries.items()}


def _rows(matrix: Matrix) -> Iterator[list[str]]:
    totals = {
        column: sum((one.verdicts for one in stages.values()), Total().verdicts)
        for column, stages in matrix.totals().items()
    }
    machines = _machines(matrix)

    def alike(column: Column) -> tuple[object, ...]:
        return (*column.series[:2], machines[column], sorted(totals[column].items()))

    for _, group in groupby(matrix.columns, key=alike):
        columns: list[Column] = list(group)
        total = Total(totals[columns[0]])
        rest = ", ".join(f"{count:,} {word}" for word, count in total.present() if word != "pass")
        versions = ", ".join(column.version for column in columns)
        first = columns[0]
        yield [first.backend, first.target, machines[first], versions, f"{total.passed:,} of {total.cells:,}", rest]


def renewed(text: str, matrix: Matrix, sweeps: Iterable[Loaded] = ()) -> str:
    """The document with the part between its two markers made again."""
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise UsageError(f"no place for the records in the document: it needs the two lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{markdown([*summary(matrix), *operators(sweeps)])}\n{END}{after}"


@click.command()
@click.argument("document", type=click.Path(path_type=Path), default=Path("README.md"))
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
def main(document: Path, records: tuple[Path, ...]) -> None:
    """Write the table of recorded runs into DOCUMENT (default: README.md), from RECORDS (default: reports/*.jsonl), and that of the
    operators from reports/ops/*.jsonl."""
    reports = document.parent / "reports"
    matrix = combine(load(records or sorted(reports.glob("*.jsonl"))))
    found = sorted((reports / "ops").glob("*.jsonl"))
    sweeps = load(found) if found else []
    document.write_text(renewed(document.read_text(encoding="utf-8"), matrix, sweeps), encoding="utf-8")
    click.echo(f"wrote the table of {counted(len(matrix.runs), 'record')} into {document}")


if __name__ == "__main__":
    main()
