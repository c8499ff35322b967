"""The operators among the rows of a matrix, as the page's view shows them: operators down; compiler, version and dtype across."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from conformance.ops.moves import KINDS, moves
from conformance.ops.words import BAD, LOOKS, MEANINGS, SIGNS, Entry, dtype_order, entry_of, operator_and_dtype
from conformance.report.matrix import Column, Key, Matrix
from conformance.report.style import stage_rank


def operators(matrix: Matrix, cells: Mapping[Key, int]) -> dict[str, Any] | None:
    """None where no row is an operator. `at` of an operator: column, word, forms that fail, cell to open. `moved`: two versions of a
    compiler, and what moved between them."""
    found: dict[tuple[str, Column, str], list[Key]] = {}
    for key in matrix.entries:
        if (named := operator_and_dtype(key.micrograph)) is not None:
            found.setdefault((named[0], key.column, named[1]), []).append(key)
    if not found:
        return None
    numbers = {column: index for index, column in enumerate(matrix.columns)}
    across = sorted(
        {(column, dtype) for _, column, dtype in found},
        key=lambda one: (one[0].series, dtype_order(one[1]), one[1], numbers[one[0]]),
    )
    places, words = {one: index for index, one in enumerate(across)}, list(SIGNS)
    rows: dict[str, list[list[Any]]] = {}
    entries: dict[tuple[str, Column, str], Entry] = {}
    for (operator, column, dtype), keys in sorted(found.items()):
        keys.sort(key=lambda key: stage_rank(key.stage))
        entry = entries[operator, column, dtype] = entry_of({key.stage: matrix.entries[key].line for key in keys})
        shown = next((key for key in keys if matrix.entries[key].line["findings"]), keys[-1])
        at = [places[column, dtype], words.index(entry.word), ", ".join(entry.forms), cells[shown]]
        rows.setdefault(operator, []).append(at)
    return {
        "words": [[word, SIGNS[word], MEANINGS[word], LOOKS[word], int(word in BAD)] for word in words],
        "across": [[numbers[column], dtype] for column, dtype in across],
        "rows": [[name, at] for name, at in rows.items()],
        "kinds": list(KINDS.items()),
        "moved": [
            [numbers[old], numbers[new], _moved(entries, old, new)]
            for columns in matrix.series()
            for old, new in pairwise(column for column in columns if any(one == column for one, _ in across))
        ],
    }


def _moved(entries: Mapping[tuple[str, Column, str], Entry], old: Column, new: Column) -> list[list[Any]]:
    """Kind, operator, dtypes, before, after and what is wrong, of each move."""
    older, newer = (
        {(operator, dtype): entry for (operator, column, dtype), entry in entries.items() if column == version}
        for version in (old, new)
    )
    order = list(KINDS)
    return [
        [order.index(move.kind), move.operator, ", ".join(move.dtypes), move.before, move.after, move.said]
        for move in moves(older, newer)
    ]
