"""The matrix as columns of small numbers: what the page holds of 100,000 cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from conformance import record, sanitize
from conformance.report import facts
from conformance.report.load import findings
from conformance.report.matrix import Entry, Key, Matrix
from conformance.report.style import LOOKS, look

# Strings on the page itself, all together; longer ones are whole in the evidence.
STRINGS = 900_000
SHORTEST, LONGEST = 60, 600
FACT_TEXT = 20_000
FACT_ITEMS = 2_000

Placed = list[tuple[int, Key, Entry]]


@dataclass
class Strings:
    """Each string once; a cell holds its number. Zero is the empty string."""

    limit: int
    table: list[str] = field(default_factory=lambda: [""])
    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})

    def number(self, text: str) -> int:
        text = sanitize.shorten(text, self.limit)
        known = self.numbers.get(text)
        if known is None:
            known = self.numbers[text] = len(self.table)
            self.table.append(text)
        return known


def order(matrix: Matrix) -> Placed:
    """The cells by their place: (row × columns + column) × stages + stage."""
    rows = {name: index for index, name in enumerate(matrix.rows)}
    columns = {column: index for index, column in enumerate(matrix.columns)}
    stages = {name: index for index, name in enumerate(matrix.stages)}
    wide, deep = len(columns), len(stages)
    placed = [
        ((rows[key.micrograph] * wide + columns[key.column]) * deep + stages[key.stage], key, entry)
        for key, entry in matrix.entries.items()
    ]
    placed.sort(key=lambda item: item[0])
    return placed


def encode(matrix: Matrix, placed: Placed) -> dict[str, Any]:
    """What the page holds of every cell: verdict, reason, findings, seconds, and the facts that are drawn."""
    strings = Strings(_limit(entry for _, _, entry in placed))
    words = [*LOOKS, *sorted({entry.verdict for entry in matrix.entries.values()} - {*LOOKS})]
    numbers = {word: index for index, word in enumerate(words)}
    runs, others = {run: index for index, run in enumerate(matrix.runs)}, matrix.of_another_revision()
    sparse: dict[str, dict[int, Any]] = {
        "findings": {},
        "url": {},
        "flaky": {},
        "surprise": {},
        "apart": dict.fromkeys((index for index, (_, key, _) in enumerate(placed) if key in others), 1),
        **{name: {} for name in facts.PLOTS},
    }
    plots = {stage: (name, fact) for name, (stage, fact) in facts.PLOTS.items()}
    verdicts, reasons, millis, of_run = [], [], [], []
    for index, (_, key, entry) in enumerate(placed):
        line = entry.line
        verdicts.append(numbers[entry.verdict])
        reasons.append(strings.number(sanitize.line(line["reason"], LONGEST)) if line["reason"] else 0)
        millis.append(round(1000 * line["seconds"]))
        of_run.append(runs[entry.run])
        if found := findings(line):
            sparse["findings"][index] = [[strings.number(part) for part in one] for one in found[:20]]
        if url := sanitize.link(line.get("url")):
            sparse["url"][index] = strings.number(url)
        if key in matrix.flaky:
            sparse["flaky"][index] = [numbers[word] for word in matrix.flaky[key]]
        if record.is_unexpected(line) != look(entry.verdict).unexpected:
            sparse["surprise"][index] = int(record.is_unexpected(line))
        if key.stage in plots:
            name, fact = plots[key.stage]
            value = facts.number(line["observation"].get(fact))
            if value is not None:
                sparse[name][index] = value
    return {
        "verdicts": [[seen.word, seen.sign, seen.meaning, int(seen.unexpected)] for seen in map(look, words)],
        "at": _runs(place for place, _, _ in placed),
        "verdict": verdicts,
        "reason": reasons,
        "millis": millis,
        "run": of_run if len(set(of_run)) > 1 else [],
        "strings": strings.table,
        **{name: [list(values), list(values.values())] for name, values in sparse.items()},
    }


def bounded(value: Any, depth: int = 0) -> Any:
    """The value with its strings cleaned and cut, and no more items than a person would read."""
    if value is None or isinstance(value, int):
        return value if value is None or -(1 << 53) < value < 1 << 53 else sanitize.text(value, FACT_TEXT)
    if isinstance(value, str):
        return sanitize.text(value, FACT_TEXT)
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has no infinities
    if depth > 8:
        return "…"
    if isinstance(value, dict):
        return {sanitize.name(key): bounded(inner, depth + 1) for key, inner in list(value.items())[:FACT_ITEMS]}
    if isinstance(value, (list, tuple)):
        return [bounded(inner, depth + 1) for inner in value[:FACT_ITEMS]]
    return sanitize.text(value, FACT_TEXT)


def _limit(entries: Iterable[Entry]) -> int:
    """How long a string on the page may be, so that all of them together keep to their share of it."""
    lengths: list[int] = []
    seen: set[str] = set()
    for entry in entries:
        for text in (entry.line["reason"][:LONGEST], *(one[2][:LONGEST] for one in findings(entry.line)[:20])):
            if text not in seen:
                seen.add(text)
                lengths.append(len(text))
    limit = LONGEST
    while limit > SHORTEST and sum(min(length, limit) for length in lengths) > STRINGS:
        limit = max(SHORTEST, limit * 2 // 3)
    return limit


def _runs(places: Iterable[int]) -> list[int]:
    """Ascending numbers as start, length, start, length …: a full matrix is two numbers."""
    found: list[int] = []
    for place in places:
        if found and found[-2] + found[-1] == place:
            found[-1] += 1
        else:
            found += [place, 1]
    return found
