"""What a matrix and the upstream reports say, as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from conformance import record
from conformance.report.columns import bounded
from conformance.report.document import Block, Cell, Heading, Paragraph, Span, Table
from conformance.report.load import Loaded, findings
from conformance.report.matrix import Column, Key, Matrix
from conformance.report.moved import describe
from conformance.report.style import LETTERS, counted, look, rank
from conformance.report.totals import Total
from conformance.report.upstream import MEANINGS, SIGNS, Report, reports

REASONS = 200


def matrix_blocks(matrix: Matrix, title: str = "Compatibility matrix") -> Iterator[Block]:
    yield Heading(title, 1)
    yield Paragraph(
        [
            Span(f"{matrix.total().sentence()}.", "strong", 2000),
            " A fallback, or what could not be observed, is no pass.",
        ]
    )
    for run in matrix.runs:
        yield Paragraph(_about(run), "-")
    for problem in matrix.problems[:20]:
        yield Paragraph([f"⚠ {problem}"], "!")
    if len(matrix.problems) > 20:
        yield Paragraph(f"⚠ and {counted(len(matrix.problems) - 20, 'more problem')}", "!")
    yield Heading("Totals")
    yield _totals(matrix)
    yield from upstream_blocks(reports(matrix))
    yield Heading("Cells")
    stages = ", ".join(f"{LETTERS.get(stage, stage[:1])} {stage}" for stage in matrix.stages)
    words = sorted({entry.verdict for entry in matrix.entries.values()}, key=lambda word: (rank(word), word))
    yield Paragraph(f"A sign a stage: {stages}. {', '.join(f'{look(word).sign} {word}' for word in words)}")
    yield from _cells(matrix)
    yield from _versions(matrix)
    yield from _unexpected(matrix)


def _about(run: Loaded) -> Cell:
    versions = ", ".join(f"{name} {run.version(name)}" for name in sorted(run.backends))
    parts = [
        versions,
        " ".join(part for part in run.machine if part),
        f"suite {run.suite}" if run.suite else "",
        run.started,
    ]
    return [Span(run.path.name, "code"), *(f" · {part}" for part in parts if part)]


def _totals(matrix: Matrix) -> Table:
    head = ["backend", "target", "machine", "version", "pass", "unexpected", *matrix.stages]
    rows: list[list[Cell]] = []
    unexpected: dict[Column, int] = dict.fromkeys(matrix.columns, 0)
    for key, entry in matrix.entries.items():
        unexpected[key.column] += record.is_unexpected(entry.line)
    for column, stages in matrix.totals().items():
        whole = sum((total.verdicts for total in stages.values()), Total().verdicts)
        cells = [f"{stages[stage].passed}/{stages[stage].cells}" if stage in stages else "" for stage in matrix.stages]
        named: list[Cell] = [Span(part, "code") for part in column]
        rows.append([*named, f"{whole['pass']} of {whole.total()}", str(unexpected[column] or ""), *cells])
    return Table(head, rows, frozenset(range(4, len(head))))


def _cells(matrix: Matrix) -> Iterator[Block]:
    columns = matrix.latest()
    for family, members in groupby(matrix.rows, key=lambda name: name.partition(".")[0]):
        rows = [[Span(name, "code"), *(_strip(matrix, column, name) for column in columns)] for name in members]
        yield Heading(family, 3)
        yield Table(["", *(column.label for column in columns)], rows)


def _versions(matrix: Matrix) -> Iterator[Block]:
    """The newest version is above; here is what differs from it in older ones."""
    several = [columns for columns in matrix.series() if len(columns) > 1]
    if several:
        yield Heading("Between versions")
    for columns in several:
        rows = [[Span(name, "code"), *(_strip(matrix, column, name) for column in columns)] for name in matrix.rows]
        differ = [row for row in rows if len(set(row[1:])) > 1]
        name = " ".join(part for part in columns[0].series if part)
        yield Heading(f"{name}: {len(differ)} of {counted(len(rows), 'micrograph')} with other verdicts", 3)
        if differ:
            yield Table(["", *(column.version for column in columns)], differ)


def _strip(matrix: Matrix, column: Column, name: str) -> Span:
    entries = [matrix.entries.get(Key(stage, column, name)) for stage in matrix.stages]
    signs = "".join(look(entry.verdict).sign if entry else "_" for entry in entries)
    flaky = "~" if any(Key(stage, column, name) in matrix.flaky for stage in matrix.stages) else ""
    return Span(signs + flaky if any(entries) else "", "code")


def _unexpected(matrix: Matrix) -> Iterator[Block]:
    bad = [(key, entry) for key, entry in matrix.entries.items() if record.is_unexpected(entry.line)]
    if not bad:
        return
    bad.sort(key=lambda pair: (rank(pair[1].verdict), pair[0].micrograph, pair[0].column))
    yield Heading(f"Unexpected: {counted(len(bad), 'cell')}")
    rows: list[list[Cell]] = [
        [
            f"{look(entry.verdict).sign} {entry.verdict}",
            [Span("/".join(key.place), "code"), f" {key.column.version}"],
            [Span(entry.line["reason"], "", 200), " ", Span(entry.line.get("url", ""), "link")],
        ]
        for key, entry in bad[:REASONS]
    ]
    yield Table(["verdict", "cell", "reason"], rows)
    if len(bad) > REASONS:
        yield Paragraph(f"and {len(bad) - REASONS} more: `conformance matrix RECORD -o matrix.html` shows them all.")


# --------------------------------------------------------------------------------------------- upstream


def upstream_blocks(found: list[Report]) -> Iterator[Block]:
    """A row a report, a column a release and target."""
    if not found:
        return
    columns = list(dict.fromkeys(column for report in found for column in report.sightings))
    columns.sort(key=lambda column: column.series)
    yield Heading("Upstream reports")
    yield Paragraph(", ".join(f"{SIGNS[state]} {state} ({meaning})" for state, meaning in MEANINGS.items()))
    rows: list[list[Cell]] = [
        [
            [Span(report.name, "code"), " ", Span(report.url, "link")],
            Span(report.title, "", 160),
            report.stage,
            *(_sign(report, column) for column in columns),
            Span(_repro(report), "code"),
        ]
        for report in found
    ]
    yield Table(["report", "what goes wrong", "stage", *(column.label for column in columns), "repro"], rows)


def _sign(report: Report, column: Column) -> str:
    sighting = report.sightings.get(column)
    return f"{SIGNS[sighting.state]} {sighting.state}" if sighting else ""


def _repro(report: Report) -> str:
    return f"conformance triage {'/'.join(report.shown.key.place)}"


def upstream_json(found: list[Report]) -> list[dict[str, Any]]:
    return [
        {
            "report": report.name,
            "title": report.title,
            "url": report.url,
            "stage": report.stage,
            "micrographs": report.micrographs,
            "repro": _repro(report),
            "releases": [
                {
                    "column": column.label,
                    "state": sighting.state,
                    "cell": "/".join(sighting.key.place),
                    "verdict": sighting.entry.verdict,
                    "reason": bounded(sighting.entry.line["reason"]),
                }
                for column, sighting in report.sightings.items()
            ],
        }
        for report in found
    ]


def matrix_json(matrix: Matrix) -> dict[str, Any]:
    return {
        "schema": "conformance-matrix/2",
        "records": [describe(run) for run in matrix.runs],
        "problems": matrix.problems,
        "totals": {
            column.label: {stage: dict(total.verdicts) for stage, total in stages.items()}
            for column, stages in matrix.totals().items()
        },
        "flaky": ["/".join(key.place) for key in matrix.flaky],
        "upstream": upstream_json(reports(matrix)),
        "cells": [
            {
                "cell": "/".join(key.place),
                "version": key.column.version,
                "machine": key.column.machine,
                "verdict": entry.verdict,
                "unexpected": record.is_unexpected(entry.line),
                "reason": bounded(entry.line["reason"]),
                "findings": [dict(zip(("kind", "check", "detail"), one, strict=True)) for one in findings(entry.line)],
                "observation": bounded(entry.line["observation"]),
            }
            for key, entry in matrix.entries.items()
        ],
    }
