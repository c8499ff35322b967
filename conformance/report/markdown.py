"""Markdown that shows what a record says and obeys none of it. The matrix in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from conformance.report import sanitize
from conformance.report.load import Loaded
from conformance.report.matrix import Column, Key, Matrix
from conformance.report.style import LETTERS, look, rank
from conformance.report.totals import Total

REASONS = 200
_SPECIAL = re.compile(r"([\\`*_\[\]#|~>@])")


def escape(value: object, limit: int = 300) -> str:
    """Prose: nothing in it is markup, a mention or a link."""
    text = sanitize.line(value, limit).replace("&", "&amp;").replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\1", text).replace("\\@", "@\u200b")


def code(value: object, limit: int = 300) -> str:
    """A code span, also where the text holds backticks or the bars of a table."""
    text = sanitize.line(value, limit).replace("|", "\\|")
    if not text:
        return ""
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(map(len, re.findall(r"`+", text))))
    return f"{fence} {text} {fence}"


def link(url: str) -> str:
    shown = sanitize.link(url)
    return f"<{shown}>" if shown and not re.search(r"[<>\s]", shown) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join(" ---: " if index in right else " --- " for index in range(len(head))) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def matrix_markdown(matrix: Matrix, title: str = "Compatibility matrix") -> str:
    return "\n".join(_matrix(matrix, title)) + "\n"


def _matrix(matrix: Matrix, title: str) -> Iterator[str]:
    yield f"# {escape(title)}\n"
    yield f"**{escape(matrix.total().sentence(), 2000)}.** A cell that fell back or could not be observed is not a pass.\n"
    for run in matrix.runs:
        yield f"- {about(run)}"
    for problem in matrix.problems[:20]:
        yield f"- ⚠ {escape(problem)}"
    if len(matrix.problems) > 20:
        yield f"- ⚠ and {len(matrix.problems) - 20} more problems"
    yield "\n## Totals\n"
    yield from _totals(matrix)
    yield "\n## Cells\n"
    yield f"A sign a stage: {', '.join(f'{LETTERS.get(stage, stage[:1])} {escape(stage)}' for stage in matrix.stages)}. {_legend(matrix)}\n"
    yield from _cells(matrix)
    if len(matrix.columns) > len(matrix.latest()):
        yield "\n## Between versions\n"
        yield from _versions(matrix)
    yield from _reasons(matrix)


def about(run: Loaded) -> str:
    backends = ", ".join(f"{escape(name)} {escape(run.version(name))}" for name in run.env.get("backends", {}) if isinstance(name, str))
    parts = [code(run.path.name), f"torch {escape(run.env.get('torch') or 'unknown')}", backends, escape(run.machine)]
    parts += [f"suite {code(run.suite)}" if run.suite else "", escape(run.started)]
    return " · ".join(part for part in parts if part)


def _totals(matrix: Matrix) -> Iterator[str]:
    by_column = matrix.totals()
    head = ["backend", "target", "version", "pass", "unexpected", *map(escape, matrix.stages)]
    rows = []
    for column, stages in by_column.items():
        whole = Total()
        for total in stages.values():
            whole.verdicts.update(total.verdicts)
        cells = [f"{stages[stage].passed}/{stages[stage].cells}" if stage in stages else "" for stage in matrix.stages]
        rows.append([*map(code, column), f"{whole.passed} of {whole.cells}", str(whole.unexpected or ""), *cells])
    yield from table(head, rows, right=frozenset(range(3, len(head))))


def _legend(matrix: Matrix) -> str:
    words = sorted({entry.verdict for entry in matrix.entries.values()}, key=lambda word: (rank(word), word))
    return ", ".join(f"{look(word).sign} {escape(word)}" for word in words)


def _cells(matrix: Matrix) -> Iterator[str]:
    columns = matrix.latest()
    heads = [f"{escape(column.backend)} {escape(column.target)} {escape(column.variant)}".rstrip() for column in columns]
    for family, members in groupby(matrix.rows, key=lambda name: name.partition(".")[0]):
        rows = [[code(name), *(_strip(matrix, column, name) for column in columns)] for name in members]
        yield f"\n### {escape(family)}\n"
        yield from table(["", *heads], (row for row in rows if any(row[1:])))


def _versions(matrix: Matrix) -> Iterator[str]:
    """The newest version is above; here is what differs from it in older ones."""
    for (backend, target), group in groupby(matrix.columns, key=lambda column: column[:2]):
        columns = list(group)
        if len(columns) < 2:
            continue
        rows = [[code(name), *(_strip(matrix, column, name) for column in columns)] for name in matrix.rows]
        differ = [row for row in rows if len(set(row[1:])) > 1]
        yield f"\n### {escape(backend)} {escape(target)}: {len(differ)} of {len(rows)} micrographs differ between versions\n"
        if differ:
            yield from table(["", *(escape(column.variant) for column in columns)], differ)


def _strip(matrix: Matrix, column: Column, name: str) -> str:
    entries = [matrix.entries.get(Key(stage, column, name)) for stage in matrix.stages]
    signs = "".join(look(entry.verdict).sign if entry else "\u2007" for entry in entries)
    flaky = " ~" if any(Key(stage, column, name) in matrix.flaky for stage in matrix.stages) else ""
    return f"`{signs}`{flaky}" if any(entries) else ""


def _reasons(matrix: Matrix) -> Iterator[str]:
    bad = [(key, entry) for key, entry in matrix.entries.items() if look(entry.verdict).unexpected]
    if not bad:
        return
    bad.sort(key=lambda pair: (rank(pair[1].verdict), pair[0].micrograph, pair[0].column))
    yield f"\n## Unexpected: {len(bad)} cells\n"
    rows = []
    for _, entry in bad[:REASONS]:
        why = " ".join(part for part in (escape(entry.line.get("reason"), 200), link(str(entry.line.get("url") or ""))) if part)
        rows.append([f"{look(entry.verdict).sign} {escape(entry.verdict)}", code(entry.name), why])
    yield from table(["verdict", "cell", "reason"], rows)
    if len(bad) > REASONS:
        yield f"\nand {len(bad) - REASONS} more: `conformance matrix RECORD -o matrix.html` shows them all."
