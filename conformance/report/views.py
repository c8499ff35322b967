"""The views of the page that draw data of their own. The matrix, the trends and the times are drawn from the cells.

A view is a name, a heading, a script in `static/` and a function from the matrix to JSON; None hides the view. Its
script calls `addView(name, draw)`; `draw(data)` returns elements. To add one, write the two and list it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.report.cause import Cause
from conformance.report.columns import bounded
from conformance.report.diff import Diff, compare
from conformance.report.evidence import Evidence
from conformance.report.facts import CLASSES
from conformance.report.matrix import Column, Key, Matrix
from conformance.report.moved import commands
from conformance.report.operators import operators
from conformance.report.style import CLASS_LOOKS
from conformance.report.upstream import MEANINGS, SIGNS, reports

ALL_PAIRS = 12  # versions of a series up to which every two of them are compared
MEMBERS = 60  # compiles of a cause whose movement is told one by one
NOT_COMPARED = 12


@dataclass(frozen=True)
class Context:
    """What a view is made from. cells, rows: the number of each cell and each micrograph on the page. pairs: the
    columns to compare, where somebody chose them."""

    matrix: Matrix
    cells: Mapping[Key, int]
    rows: Mapping[str, int]
    evidence: Evidence
    any_revision: bool = False
    pairs: Sequence[tuple[Column, Column]] = ()


@dataclass(frozen=True)
class View:
    name: str
    label: str
    script: str
    data: Callable[[Context], Any]


# ------------------------------------------------------------------------------------------- what moved


def moved(context: Context) -> dict[str, Any] | None:
    """Every two versions of a series compared, and the two with which the page opens."""
    matrix = context.matrix
    series = [list(pair) for pair in context.pairs] or [columns for columns in matrix.series() if len(columns) > 1]
    if not series:
        return None
    sides = matrix.sides()
    numbers = {column: index for index, column in enumerate(matrix.columns)}
    pairs = []
    for old, new in (pair for columns in series for pair in _pairs(columns)):
        after = {place._replace(backend=old.backend, target=old.target): entry for place, entry in sides[new].items()}
        diff = compare(sides[old], after, context.any_revision)
        pairs.append({"old": numbers[old], "new": numbers[new], **_pair(context, old, new, diff)})
    classes = [[rank, CLASS_LOOKS[rank].word, CLASS_LOOKS[rank].sign, CLASS_LOOKS[rank].meaning] for rank in CLASSES]
    return {
        "classes": classes,
        "series": [[numbers[column] for column in columns] for columns in series],
        "pairs": pairs,
    }


def _pairs(columns: list[Column]) -> list[tuple[Column, Column]]:
    """Every two, the older first; of a long series neighbours and each against the newest."""
    every = [(old, new) for at, new in enumerate(columns) for old in columns[:at]]
    if len(columns) <= ALL_PAIRS:
        return every
    return [(old, new) for old, new in every if new == columns[-1] or columns.index(new) - columns.index(old) == 1]


def _pair(context: Context, old: Column, new: Column, diff: Diff) -> dict[str, Any]:
    return {
        "cells": [diff.cells, diff.compared, diff.same],
        "warnings": diff.warnings[:10],
        "causes": [_cause(context, cause, old, new) for cause in diff.causes],
        "uncompared": [list(one) for one in diff.uncompared[:NOT_COMPARED]],
    }


def _cause(context: Context, cause: Cause, old: Column, new: Column) -> dict[str, Any]:
    matrix, example = context.matrix, cause.example
    first = example.first
    texts = [
        [name, context.evidence.reference(first.old, before), context.evidence.reference(first.new, after)]
        for name, before, after in first.texts()[:3]
    ]
    members = sorted(cause.compiles, key=lambda one: one is not example)
    return {
        "rank": CLASSES.index(cause.rank),
        "stage": matrix.stages.index(cause.stage),
        "text": bounded(cause.text),
        "headline": bounded(cause.headline),
        "then": bounded(cause.then()),
        "url": cause.url if cause.url.startswith("https://github.com/") else "",
        "expected": int(not cause.fails),
        "otherwise": int(cause.otherwise),
        "rows": [context.rows[one.place.micrograph] for one in members],
        "summaries": [bounded(one.summary()) for one in members[:MEMBERS]],
        "texts": [text for text in texts if text[1] and text[2]],
        "commands": commands(example),
        "cells": [context.cells[Key(cause.stage, column, example.place.micrograph)] for column in (old, new)],
    }


# --------------------------------------------------------------------------------------------- upstream


def upstream(context: Context) -> dict[str, Any] | None:
    found = reports(context.matrix)
    if not found:
        return None
    numbers = {column: index for index, column in enumerate(context.matrix.columns)}
    states = list(SIGNS)
    return {
        "states": [[state, SIGNS[state], MEANINGS[state]] for state in states],
        "reports": [
            {
                "name": report.name,
                "title": report.title,
                "url": report.url,
                "stage": report.stage,
                "shown": context.cells[report.shown.key],
                "at": [[numbers[c], states.index(s.state), context.cells[s.key]] for c, s in report.sightings.items()],
            }
            for report in found
        ],
    }


def operator_table(context: Context) -> dict[str, Any] | None:
    return operators(context.matrix, context.cells)


VIEWS = (
    View("moved", "What moved", "moved.js", moved),
    View("upstream", "Upstream reports", "upstream.js", upstream),
    View("operators", "Operators", "operators.js", operator_table),
)
