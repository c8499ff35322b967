"""The matrix, the findings and the doctor's answer in a terminal of any width, with or without colour or Unicode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich import box
from rich.console import ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from conformance import record, sanitize
from conformance.report.address import Address, address
from conformance.report.ascii_fallback import Shown
from conformance.report.load import findings
from conformance.report.matrix import natural, verdict
from conformance.report.style import LETTERS, Look, counted, look, rank, stage_rank
from conformance.report.totals import Total

Cells = Mapping[str, Mapping[str, Any]]
Column = tuple[str, str]


def matrix_table(cells: Cells, rows: int = 60) -> Matrix:
    """A row a micrograph, a sign a stage, a column a backend and target; then totals. Past `rows` micrographs, those
    with nothing unexpected are one line a family."""
    return Matrix(cells, rows)


def findings_list(cells: Cells, limit: int = 20) -> Findings:
    """The unexpected cells with their reasons, the worst first, at most `limit` of them."""
    return Findings(cells, limit)


def reasons_list(cells: Cells) -> Reasons:
    """Why a cell that is not `pass` is nothing unexpected: each reason once, with how many cells it holds for."""
    return Reasons(cells)


def doctor_table(
    reasons: Mapping[str, Mapping[str, Mapping[Any, str]]], versions: Mapping[str, Mapping[str, str]]
) -> Doctor:
    """What can be observed here. `reasons[backend][target]` maps a stage to why it cannot be observed; a stage that is
    not in it can. `versions[backend]` is what the backend says of itself: empty when it is not installed."""
    return Doctor(reasons, versions)


@dataclass(frozen=True)
class Matrix(Shown):
    cells: Cells
    rows: int = 60

    def parts(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        found = _placed(self.cells)
        if not found:
            yield Text("no cells", style="dim")
            return
        grid = Grid(found, sorted({place.stage for place in found}, key=stage_rank), options)
        columns = sorted({place.column for place in found}, key=lambda column: (column[0], natural(column[1])))
        names = _row_names(found, self.rows, self.cells)
        for chunk in grid.chunks(columns, names):
            yield grid.table(chunk, names)
        yield _legend(found.values(), grid.stages, options.ascii_only)
        yield Text("")
        yield _totals(found, columns, options)


class Grid:
    """Lays out the signs. Nothing is ever cut but names: what does not fit beside goes below."""

    def __init__(self, found: Mapping[Address, str], stages: Sequence[str], options: ConsoleOptions) -> None:
        self.found = found
        self.stages = stages
        self.plain = options.ascii_only
        self.width = options.max_width
        self.gap = " " if self.width >= 40 else ""

    def name_width(self, names: Sequence[str], columns: Sequence[Column] = ()) -> int:
        """A third of the width, or all that the columns leave of it."""
        spare = self.width - sum(self.column_width(column) + 2 for column in columns) - 2 if columns else 0
        return min(max(map(len, names)), max(self.width // 3, 12, spare))

    def column_width(self, column: Column) -> int:
        signs = len(self.stages) + len(self.gap) * (len(self.stages) - 1)
        return max(signs, min(max(map(len, column)), 2 * len(LETTERS)))

    def chunks(self, columns: Sequence[Column], names: Sequence[str]) -> Iterator[list[Column]]:
        room = self.width - self.name_width(names) - 2
        chunk: list[Column] = []
        used = 0
        for column in columns:
            wide = self.column_width(column) + 2
            if chunk and used + wide > room:
                yield chunk
                chunk, used = [], 0
            chunk.append(column)
            used += wide
        yield chunk

    def table(self, columns: Sequence[Column], names: Sequence[str]) -> Table:
        table = _table(self.plain)
        table.add_column("", no_wrap=True, overflow="crop")
        letters = self.gap.join(_letter(stage) for stage in self.stages)
        for column in columns:
            width = self.column_width(column)
            head = "\n".join([*(sanitize.shorten(part, width) for part in column), letters])
            table.add_column(Text(head), no_wrap=True, overflow="crop", width=width)
        width = self.name_width(names, columns)
        for name in names:
            shown = sanitize.shorten(name, width)
            table.add_row(Text(shown), *(self.signs(column, name) for column in columns))
        return table

    def signs(self, column: Column, name: str) -> Text:
        words = [self.found.get(Address(stage, *column, name)) for stage in self.stages]
        if not any(words):
            return Text("")
        return _strip([look(word) if word else None for word in words], self.plain, self.gap)


@dataclass(frozen=True)
class Findings(Shown):
    cells: Cells
    limit: int = 20

    def parts(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        bad = [(cell, line) for cell, line in self.cells.items() if record.is_unexpected(line)]
        bad.sort(key=lambda pair: (rank(verdict(pair[1])), pair[0]))
        for cell, line in bad[: self.limit]:
            seen = look(verdict(line))
            head = Text.assemble(
                (f"{_sign(seen, options.ascii_only)} {seen.word} ", seen.style), (sanitize.name(cell), "bold")
            )
            yield head
            for detail in _details(line):
                yield Text("    " + detail, overflow="fold")
        if len(bad) > self.limit:
            yield Text(
                f"and {len(bad) - self.limit} more: `conformance matrix RECORD -o matrix.html` shows them all",
                style="dim",
            )


@dataclass(frozen=True)
class Reasons(Shown):
    cells: Cells

    def parts(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        places: dict[tuple[str, str], list[str]] = {}
        for cell, line in sorted(self.cells.items()):
            word = verdict(line)
            if word not in ("pass", "blocked") and not record.is_unexpected(line):  # what blocks is itself in the list
                reason = "".join(_details(line)[:1])
                reason = reason.partition(" (")[0] if word == "xfail" else reason  # the expectation's own words
                places.setdefault((word, " · ".join([sanitize.shorten(reason, 160), *_url(line)])), []).append(
                    sanitize.name(cell)
                )
        for (word, reason), where in sorted(
            places.items(), key=lambda item: (rank(item[0][0]), -len(item[1]), item[1])
        ):
            seen = look(word)
            shown = where[0] if len(where) == 1 else f"{counted(len(where), 'cell')}, {where[0]} for one"
            head = (f"{_sign(seen, options.ascii_only)} {word} ", seen.style)
            yield Text.assemble(head, shown, f": {reason or 'no reason was given'}", overflow="fold")


@dataclass(frozen=True)
class Doctor(Shown):
    reasons: Mapping[str, Mapping[str, Mapping[Any, str]]]
    versions: Mapping[str, Mapping[str, str]]

    def parts(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        plain = options.ascii_only
        stages = list(LETTERS)
        table = _table(plain)
        for heading in ("backend", "version", "target", " ".join(LETTERS.values())):
            table.add_column(heading, no_wrap=heading != "version", overflow="fold")
        for backend, targets in self.reasons.items():
            version = ", ".join(
                f"{sanitize.name(k)} {sanitize.name(v)}" for k, v in self.versions.get(backend, {}).items()
            )
            first = (backend, version or "not installed")
            for target, reasons in targets.items():
                named = {str(stage): reason for stage, reason in reasons.items()}
                table.add_row(
                    Text(sanitize.name(first[0])),
                    Text(first[1], style="" if version else "dim"),
                    Text(sanitize.name(target)),
                    _strip([look("unavailable" if stage in named else "pass") for stage in stages], plain),
                )
                first = ("", "")
        yield table
        yield _stage_legend(stages)
        yield from self._why(plain)

    def _why(self, plain: bool) -> Iterator[Text]:
        """Each reason once, with all that it holds for: a backend that is not installed is one line, not seven."""
        places: dict[str, list[tuple[str, str, str]]] = {}
        for backend, targets in self.reasons.items():
            for target, reasons in targets.items():
                for stage, reason in reasons.items():
                    places.setdefault(sanitize.line(reason), []).append(
                        (sanitize.name(backend), sanitize.name(target), str(stage))
                    )
        if places:
            yield Text("")
        sign = _sign(look("unavailable"), plain)
        for reason, where in places.items():
            yield Text.assemble((f"{sign} {_where(where)}", "bold"), f": {reason}")


def _where(places: Sequence[tuple[str, str, str]]) -> str:
    """`inductor/cuda (all stages)`, `inductor/sm_90, sm_100 (runtime, cache)`"""
    stages: dict[tuple[str, str], list[str]] = {}
    for backend, target, stage in places:
        stages.setdefault((backend, target), []).append(stage)
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (backend, target), found in stages.items():
        grouped.setdefault((backend, tuple(found)), []).append(target)
    parts = []
    for (backend, which_stages), targets in grouped.items():
        which = "all stages" if len(which_stages) >= len(LETTERS) else ", ".join(which_stages)
        parts.append(f"{backend}/{', '.join(targets)} ({which})")
    return "; ".join(parts)


# ------------------------------------------------------------------------------------------------ pieces


def _placed(cells: Cells) -> dict[Address, str]:
    """Verdicts by address; a name that is none is left out here (the reader has already said so)."""
    return {place: verdict(line) for cell, line in cells.items() if (place := address(cell)) is not None}


def _details(line: Mapping[str, Any]) -> list[str]:
    reason = sanitize.line(line.get("reason") or "", 400)
    details = [(check, kind, sanitize.line(detail, 400)) for kind, check, detail in findings(line)]
    more = [f"{check} {kind}: {detail}" for check, kind, detail in details if detail != reason]
    return [reason] * bool(reason) + more + _url(line)


def _url(line: Mapping[str, Any]) -> list[str]:
    return [url] if (url := sanitize.link(line.get("url"))) != "" else []


def _row_names(found: Mapping[Address, str], rows: int, cells: Cells) -> list[str]:
    names = sorted({place.micrograph for place in found})
    if len(names) <= rows:
        return names
    bad = {
        place.micrograph
        for name, line in cells.items()
        if record.is_unexpected(line) and (place := address(name)) is not None
    }
    kept: list[str] = []
    for family, members in groupby(names, key=lambda name: name.partition(".")[0]):
        listed = list(members)
        kept += [name for name in listed if name in bad]
        if good := len(listed) - sum(name in bad for name in listed):
            kept.append(f"{family}: {good} as expected")
    return kept


def _table(plain: bool) -> Table:
    return Table(
        box=box.ASCII2 if plain else box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, header_style="bold"
    )


def _strip(looks: Iterable[Look | None], plain: bool, gap: str = " ") -> Text:
    strip = Text()
    for index, seen in enumerate(looks):
        if index:
            strip.append(gap)
        strip.append(_sign(seen, plain) if seen else " ", seen.style if seen else "")
    return strip


def _sign(seen: Look, plain: bool) -> str:
    return seen.ascii if plain else seen.sign


def _letter(stage: str) -> str:
    return LETTERS.get(stage, stage[:1] or "?")


def _stage_legend(stages: Iterable[str]) -> Text:
    return Text("  ".join(f"{_letter(stage)} {stage}" for stage in stages), style="dim")


def _legend(words: Iterable[str], stages: Sequence[str], plain: bool) -> Text:
    legend = _stage_legend(stages)
    legend.append("\n")
    for word in sorted(set(words), key=lambda word: (rank(word), word)):
        seen = look(word)
        legend.append(f"{_sign(seen, plain)} {word}  ", seen.style)
    return legend


def _totals(found: Mapping[Address, str], columns: Sequence[Column], options: ConsoleOptions) -> Table:
    whole = Total.of(found.values())
    words = [word for word, _ in whole.present() if word != "pass"]
    narrow = options.max_width < 40 + 9 * len(words)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=not narrow, header_style="dim")
    table.add_column("", overflow="fold")
    table.add_column("pass", justify="right" if not narrow else "left", no_wrap=not narrow, overflow="fold")
    for word in words if not narrow else ():
        table.add_column(word, justify="right")
    rows = [
        (f"{backend}/{target}", [w for p, w in found.items() if p.column == (backend, target)])
        for backend, target in columns
    ]
    for label, verdicts in [*rows, ("all", list(found.values()))] if len(rows) > 1 else rows:
        total = Total.of(verdicts)
        if narrow:
            table.add_row(Text(label), Text(total.sentence()))
            continue
        counts = [_count(total.verdicts[word], look(word)) for word in words]
        table.add_row(
            Text(label), Text(f"{total.passed:,} of {total.cells:,}", style="green" if total.passed else ""), *counts
        )
    return table


def _count(count: int, seen: Look) -> Text:
    return Text(f"{count:,}" if count else "", style=seen.style)
