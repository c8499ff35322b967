"""The coverage table: how each operator fares in each dtype, read from records. Nothing is run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from conformance.cell import Cell
from conformance.errors import UsageError
from conformance.ops.moves import KINDS, Move, moves
from conformance.ops.words import BAD, LOOKS, MEANINGS, SIGNS, Entry, dtype_order, entry_of, operator_and_dtype
from conformance.record import Run


@dataclass(frozen=True, order=True)
class Column:
    """A compiler in a version, for a target, in a dtype."""

    backend: str
    target: str
    version: str
    dtype: str


@dataclass
class Coverage:
    """Operators down, columns across."""

    rows: list[str]
    columns: list[Column]
    entries: dict[tuple[str, Column], Entry]

    def changed(self) -> Coverage:
        """The rows in which two versions of a compiler differ, with the columns that differ."""
        pairs = [(old, new) for old in self.columns for new in self.columns if _versions_of_one(old, new)]
        moved = {
            (row, column)
            for row in self.rows
            for old, new in pairs
            if _differ(self.entries.get((row, old)), self.entries.get((row, new)))
            for column in (old, new)
        }
        rows = [row for row in self.rows if any(one == row for one, _ in moved)]
        columns = [column for column in self.columns if any(one == column for _, one in moved)]
        kept = {key: entry for key, entry in self.entries.items() if key in moved}
        return Coverage(rows, columns, kept)

    def moved(self) -> list[tuple[Column, Column, list[Move]]]:
        """For each two neighbouring versions of a compiler for a target: what moved. The dtype of these columns is empty."""
        heads = list(dict.fromkeys(replace(column, dtype="") for column in self.columns))
        heads.sort(key=lambda head: version_order(head.version))
        told = []
        for index, old in enumerate(heads):
            new = next((one for one in heads[index + 1 :] if _versions_of_one(old, one)), None)
            if new is not None:
                told.append((old, new, moves(self._of(old), self._of(new))))
        return told

    def _of(self, head: Column) -> dict[tuple[str, str], Entry]:
        """A version's entries by operator and dtype."""
        return {(row, c.dtype): entry for (row, c), entry in self.entries.items() if replace(c, dtype="") == head}

    def totals(self, column: Column) -> dict[str, int]:
        """How often each word stands in a column."""
        words = [entry.word for (_, one), entry in self.entries.items() if one == column]
        return {word: words.count(word) for word in SIGNS if word in words}


def _versions_of_one(old: Column, new: Column) -> bool:
    same = (old.backend, old.target, old.dtype) == (new.backend, new.target, new.dtype)
    return same and version_order(old.version) < version_order(new.version)


def version_order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdigit())


def _differ(old: Entry | None, new: Entry | None) -> bool:
    return old is not None and new is not None and (old.word, old.forms) != (new.word, new.forms)


def coverage(runs: Sequence[Run]) -> Coverage:
    """The table of some records. A record without operators is the user's mistake."""
    entries: dict[tuple[str, Column], Entry] = {}
    for run in runs:
        found = dict(_entries(run))
        if not found:
            raise UsageError(f"{run.path} has no cells of operators: make it with `conformance ops --record FILE`")
        entries |= found
    rows = sorted({row for row, _ in entries})
    columns = sorted(
        {column for _, column in entries},
        key=lambda c: (c.backend, c.target, dtype_order(c.dtype), version_order(c.version)),
    )
    return Coverage(rows, columns, entries)


def _entries(run: Run) -> Iterator[tuple[tuple[str, Column], Entry]]:
    lines: dict[tuple[str, Column], dict[str, Mapping[str, Any]]] = {}
    for name, line in run.cells.items():
        cell = Cell.parse(name)
        named = operator_and_dtype(cell.micrograph)
        if named is None:
            continue
        operator, dtype = named
        column = Column(cell.backend, cell.target, version_of(run, cell.backend), dtype)
        lines.setdefault((operator, column), {})[cell.stage.value] = line
    for key, stages in lines.items():
        yield key, entry_of(stages)


def version_of(run: Run, backend: str) -> str:
    env = run.header.get("env", {})
    versions = env.get("backends", {}).get(backend, {})
    return str(versions.get(backend) or versions.get("torch") or env.get("torch", ""))


# ------------------------------------------------------------------------------------------------ documents


def as_json(table: Coverage) -> dict[str, Any]:
    """For programs."""
    return {
        "schema": "conformance-ops/1",
        "words": {word: [SIGNS[word], MEANINGS[word], LOOKS[word], int(word in BAD)] for word in SIGNS},
        "columns": [[c.backend, c.target, c.version, c.dtype] for c in table.columns],
        "operators": {
            row: {
                str(index): {"is": entry.word, "forms": entry.forms, "findings": entry.findings}
                | ({"unbuilt": entry.unbuilt} if entry.unbuilt else {})
                for index, column in enumerate(table.columns)
                if (entry := table.entries.get((row, column))) is not None
            }
            for row in table.rows
        },
        "moved": [
            {"backend": old.backend, "target": old.target, "from": old.version, "to": new.version}
            | {"moves": [asdict(move) for move in found]}
            for old, new, found in table.moved()
        ],
    }


def moves_as_markdown(table: Coverage) -> str:
    """What moved between neighbouring versions, what costs most first; a line for the dtypes of an operator that moved alike."""
    parts = ["# What moved: operators", ""]
    for old, new, found in table.moved():
        parts += [f"## {old.backend} {old.version} → {new.version}, {old.target}", ""]
        told = [(kind, [move for move in found if move.kind == kind]) for kind in KINDS]
        parts += ["| | operators | dtypes of operators |", "| --- | ---: | ---: |"]
        for kind, some in told:
            parts.append(f"| {kind}: {KINDS[kind]} | {_operators(some)} | {sum(len(move.dtypes) for move in some)} |")
        for kind, some in told:
            if some:
                parts += ["", f"### {kind[0].upper()}{kind[1:]}", ""]
                parts += ["| operator | dtypes | before | now | what |", "| --- | --- | --- | --- | --- |"]
                parts += [_row_of(move) for move in some]
        parts.append("")
    if len(parts) == 2:
        parts.append("No two versions of a compiler for the same target are among these records.")
    return "\n".join(parts)


def _operators(some: Sequence[Move]) -> int:
    return len({move.operator for move in some})


def _row_of(move: Move) -> str:
    said = move.said.replace("|", "\\|").replace("\n", " ")
    return f"| `{move.operator}` | {', '.join(move.dtypes)} | {move.before} | {move.after} | {said[:220]} |"


def as_markdown(table: Coverage) -> str:
    """A table for each compiler, target and version: operators down, dtypes across; then what is wrong."""
    parts = ["# Operators", "", "Signs: " + "; ".join(f"{SIGNS[word]} {word}" for word in SIGNS) + ".", ""]
    for head in dict.fromkeys((c.backend, c.target, c.version) for c in table.columns):
        columns = [c for c in table.columns if (c.backend, c.target, c.version) == head]
        parts += [f"## {head[0]} {head[2]}, {head[1]}", ""]
        parts += ["| operator | " + " | ".join(c.dtype for c in columns) + " |", "| --- |" + " --- |" * len(columns)]
        for row in table.rows:
            signs = [SIGNS[e.word] if (e := table.entries.get((row, c))) else "" for c in columns]
            if any(signs):
                parts.append(f"| {row} | " + " | ".join(signs) + " |")
        parts += ["", "| | " + " | ".join(c.dtype for c in columns) + " |", "| --- |" + " --- |" * len(columns)]
        for word in SIGNS:
            counts = [table.totals(c).get(word, 0) for c in columns]
            if any(counts):
                parts.append(f"| {SIGNS[word]} {word} | " + " | ".join(map(str, counts)) + " |")
        parts += ["", *_wrong_list(table, columns), ""]
        if unbuilt := list(_unbuilt_list(table, columns)):
            parts += ["Registered converters that took no part, by operator of the graph:", "", *unbuilt, ""]
    return "\n".join(parts)


def _wrong_list(table: Coverage, columns: Sequence[Column]) -> Iterator[str]:
    for row in table.rows:
        for column in columns:
            entry = table.entries.get((row, column))
            if entry is not None and entry.word in BAD:
                said = entry.findings[0].replace("|", "\\|").replace("\n", " ") if entry.findings else ""
                yield f"- `{row}` {column.dtype}: {entry.word} ({', '.join(entry.forms)}): {said[:300]}"


def _unbuilt_list(table: Coverage, columns: Sequence[Column]) -> Iterator[str]:
    """What the compiler's registry claims and did not convert: in which samples of which operators and dtypes."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in table.rows:
        for column in columns:
            entry = table.entries.get((row, column))
            for op in entry.unbuilt if entry is not None else ():
                found.setdefault(op, {}).setdefault(row, []).append(column.dtype)
    for op, rows in sorted(found.items()):
        yield f"- `{op}`: " + "; ".join(f"{row} ({', '.join(dtypes)})" for row, dtypes in rows.items())


def write(runs: Sequence[Run], path: Path, changed: bool = False) -> None:
    """Write the table as the file's suffix says: .md, .json, or .html, which is the page of the records, opened on its
    operators. changed: only what differs between two versions."""
    table = coverage(runs)
    if path.suffix == ".html":
        _write_page(runs, path, changed)
        return
    documents = {".json": _json_text, ".md": moves_as_markdown if changed else as_markdown}
    if path.suffix not in documents:
        raise UsageError(f"cannot tell what {path.name} is to be: name it .html, .md or .json")
    shown = table.changed() if changed and path.suffix == ".json" else table
    path.write_text(documents[path.suffix](shown), encoding="utf-8")


def _json_text(table: Coverage) -> str:
    return json.dumps(as_json(table), indent=1, ensure_ascii=False) + "\n"


def _write_page(runs: Sequence[Run], path: Path, changed: bool) -> None:
    from conformance.report.load import load
    from conformance.report.matrix import combine
    from conformance.report.page import write_page

    matrix = combine(load(run.path for run in runs))
    write_page(matrix, path, "Operators", opens="operators", only_changed=changed)
