"""What a diff and a history say, as blocks and as JSON: one screen first, then the details of each cause."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from conformance import sanitize
from conformance.ops.words import operator_and_dtype
from conformance.report.cause import Cause, Compile
from conformance.report.change import Change
from conformance.report.columns import bounded
from conformance.report.diff import Diff
from conformance.report.document import Block, Cell, Code, Fold, Heading, Paragraph, Span, Table
from conformance.report.facts import BOOKKEEPING, CLASSES
from conformance.report.history import History
from conformance.report.load import Loaded, plain_version
from conformance.report.style import CLASS_LOOKS, counted, look

COMMENT = 60_000  # characters; a comment on GitHub has at most 65,536
EXCERPT = 16  # lines of a graph's difference
DETAILS = "Details"  # what follows this heading is read from the texts beside the records, which takes longest
MEMBERS = 8  # compiles that are listed of one cause


# ------------------------------------------------------------------------------------------------- diff


def title(diff: Diff) -> str:
    """`torch 2.11.0 → 2.15.0`, or the records' names where the versions are the same."""
    backends = sorted({one.place.backend for cause in diff.causes for one in cause.compiles}) or [""]
    changed: dict[str, str] = {}
    for old, new in zip(diff.old[-1:], diff.new[-1:], strict=False):
        for backend in backends:
            before, after = old.versions(backend), new.versions(backend)
            for name in after:
                a, b = plain_version(before.get(name, "none")), plain_version(after[name])
                if a != b:
                    changed[name] = f"{name} {a} → {b}"
    names = [" + ".join(run.label for run in runs) or "nothing" for runs in (diff.old, diff.new)]
    return ", ".join(list(changed.values())[:4]) or f"{names[0]} → {names[1]}"


def diff_blocks(diff: Diff, everything: bool = False, height: int = 40) -> Iterator[Block]:
    """everything: bookkeeping too. height: how many lines the first screen has."""
    yield Heading(title(diff), 2)
    yield Paragraph(_headline(diff))
    for warning in diff.warnings[:5]:
        yield Paragraph(Span(warning, "yellow", 400), "!")
    shown = [rank for rank in CLASSES if diff.of(rank) and (everything or rank != BOOKKEEPING)]
    yield from _screen(diff, shown, height - 8 - len(diff.warnings[:5]) - min(len(diff.uncompared), 3))
    for one in diff.uncompared[:3]:
        yield Paragraph(
            Span(f"not compared: {counted(one.cells, 'cell')}, {one.example} for one: {one.reason}", "soft", 400)
        )
    if hidden := 0 if everything else len(diff.of(BOOKKEEPING)):
        what = f"{counted(hidden, 'cause')} in {counted(diff.compiles(BOOKKEEPING), 'compile')}"
        yield Paragraph(Span(f"bookkeeping (guard names, metadata, digests): {what}; --all lists them", "soft"))
    if shown:
        yield Heading(DETAILS, 3)
    for rank in shown:
        for cause in diff.of(rank):
            yield _details(cause)


def first_screen(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks before the details, which are not made."""
    return takewhile(lambda block: not (isinstance(block, Heading) and block.text == DETAILS), blocks)


def _headline(diff: Diff) -> Cell:
    """`1 wrong or crash, 2 fixed; 1,015 cells in both, 931 compared`"""
    counts = [(rank, len(diff.of(rank))) for rank in CLASSES if rank != BOOKKEEPING and diff.of(rank)]
    parts: list[Span | str] = []
    for rank, count in counts:
        parts += [Span(f"{CLASS_LOOKS[rank].sign} {count} {CLASS_LOOKS[rank].word}", CLASS_LOOKS[rank].style), " · "]
    cells = f"{counted(diff.cells, 'cell')} in both, {diff.compared:,} compared, {diff.same:,} the same"
    none = "nothing moved" if diff.compared else "nothing could be compared"
    return [*(parts or [Span(none, "strong"), " · "]), Span(cells, "soft")]


def _screen(diff: Diff, ranks: list[str], room: int) -> Iterator[Block]:
    """A line a cause, a heading a class; what does not fit is counted, and is in the details."""
    rows: list[list[Cell]] = []
    one_column = len({one.place.column for cause in diff.causes for one in cause.compiles}) == 1
    shares = _shares([len(diff.of(rank)) for rank in ranks], room - len(ranks))
    for rank, share in zip(ranks, shares, strict=True):
        seen = CLASS_LOOKS[rank]
        count = f"{counted(len(diff.of(rank)), 'cause')}, {counted(diff.compiles(rank), 'compile')}"
        rows.append([Span(seen.sign, seen.style), Span(seen.word, seen.style), Span(count, seen.style), "", ""])
        for cause in diff.of(rank)[:share]:
            example = cause.example.place.micrograph if one_column else "/".join(cause.example.place[1:])
            rows.append(
                ["", cause.stage, Span(cause.headline, "", 200), f"{len(cause.compiles)}", Span(example, "code")]
            )
    if rows:
        yield Table(["", "first stage", "what moved there", "compiles", "for example"], rows, frozenset({3}), cut=2)
    if left := sum(len(diff.of(rank)) for rank in ranks) - sum(shares):
        yield Paragraph(Span(f"and {counted(left, 'more cause')}: see the details", "soft"))


def _shares(counts: list[int], room: int, least: int = 3) -> list[int]:
    """How many causes of each class the screen shows: a few of every class, the rest of the room to the costliest."""
    shares = [0] * len(counts)
    for limit in (1, least, room):
        for at, count in enumerate(counts):
            more = min(count, limit) - shares[at]
            shares[at] += max(0, min(more, room - sum(shares)))
    return shares


def _details(cause: Cause) -> Fold:
    seen, example = CLASS_LOOKS[cause.rank], cause.example
    rows: list[list[Cell]] = [
        [Span(f"{one.place.micrograph} {one.place.target}", "code", 120), [Span(one.summary(), "", 400), *_note(one)]]
        for one in sorted(cause.compiles, key=lambda one: one is not example)[:MEMBERS]
    ]
    blocks: list[Block] = [Table(["compile", "what moved"], rows)]
    if len(cause.compiles) > MEMBERS:
        blocks.append(Paragraph(Span(f"and {len(cause.compiles) - MEMBERS} more like these", "soft")))
    if after := cause.then():
        blocks.append(Paragraph([Span("then ", "soft"), Span(after, "", 400)]))
    if cause.url:
        blocks.append(Paragraph([Span("report: ", "soft"), Span(cause.url, "", 200)]))
    blocks += list(_before_and_after(example.first))
    blocks.append(Code("\n".join(commands(example)), "bash"))
    count = f"{counted(len(cause.compiles), 'compile')}, {', '.join(cause.columns[:3])}"
    head = [
        Span(f"{seen.sign} {seen.word} ", seen.style),
        Span(f"{cause.stage}: ", "strong"),
        Span(cause.headline, "", 400),
    ]
    return Fold([*head, Span(f" ({count})", "soft")], blocks)


def _note(one: Compile) -> list[Span]:
    url = one.worst.new.line.get("url")
    return [Span(f" (expected: {sanitize.line(url, 200)})" if url else " (expected)", "soft")] if one.expected else []


def _before_and_after(change: Change) -> Iterator[Block]:
    """The lines of the graph or code that differ, of the first text that is beside both records."""
    for name, old, new in change.texts():
        before, after = change.old.run.text(old), change.new.run.text(new)
        if before is None or after is None:
            continue
        old_lines, new_lines = (
            [line.rstrip() for line in sanitize.text(text, 200_000).splitlines()] for text in (before, after)
        )
        lines = difflib.unified_diff(old_lines, new_lines, lineterm="", n=1)
        different = [line for line in lines if not line.startswith(("---", "+++"))]
        more = [f"… and {counted(len(different) - EXCERPT, 'more line')}"] if len(different) > EXCERPT else []
        if different:
            yield Paragraph(Span(f"{change.place.stage}: {name}, before and after", "soft"))
            yield Code("\n".join([*different[:EXCERPT], *more]), "diff")
            return


def commands(one: Compile) -> list[str]:
    """What shows it again, to be copied."""
    cell = shlex.quote("/".join(one.first.place))
    runs = [shlex.quote(sanitize.line(entry.run.path)) for entry in (one.first.old, one.first.new)]
    shown = [f"conformance show {cell} --record {run}" for run in runs]
    return [*shown, _upstream_command(one) or _operator_command(one) or f"conformance triage {cell}"]


def _upstream_command(one: Compile) -> str:
    """What runs a compiler's own test again; empty for a micrograph."""
    prefix, _, test = one.first.place.micrograph.partition("upstream:")
    if prefix or not test:
        return ""
    suite = next(iter(one.first.new.run.header.get("env", {}).get("checkout") or {"SUITE": ""}))
    file, *_, name = test.split("::")
    return f"conformance upstream {shlex.quote(suite)} --src CHECKOUT -f {shlex.quote(file)} -k {shlex.quote(name)}"


def _operator_command(one: Compile) -> str:
    """What examines an operator again; empty for a micrograph."""
    place = one.first.place
    found = operator_and_dtype(place.micrograph)
    if found is None:
        return ""
    name, dtype = found
    words = ["-b", place.backend, "-t", place.target, "-k", name, "--dtype", dtype, "-s", place.stage]
    return f"conformance ops {shlex.join(words)}"


def diff_json(diff: Diff) -> dict[str, Any]:
    return {
        "schema": "conformance-diff/2",
        "title": title(diff),
        "old": [describe(run) for run in diff.old],
        "new": [describe(run) for run in diff.new],
        "warnings": diff.warnings,
        "cells": {"both": diff.cells, "compared": diff.compared, "same": diff.same},
        "classes": {rank: {"causes": len(diff.of(rank)), "compiles": diff.compiles(rank)} for rank in CLASSES},
        "causes": [cause_json(cause) for cause in diff.causes],
        "not_compared": [one._asdict() for one in diff.uncompared],
    }


def cause_json(cause: Cause) -> dict[str, Any]:
    return {
        "class": cause.rank,
        "stage": cause.stage,
        "cause": cause.text,
        "then": cause.then(),
        "report": cause.url,
        "expected": not cause.fails,
        "example": "/".join(cause.example.first.place),
        "compiles": [
            {
                "micrograph": one.place.micrograph,
                "backend": one.place.backend,
                "target": one.place.target,
                "changes": [_change_json(change) for change in one.changes],
            }
            for one in cause.compiles
        ],
    }


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "stage": change.place.stage,
        "class": change.rank,
        "old": change.old.verdict,
        "new": change.new.verdict,
        "reason": sanitize.line(change.new.line["reason"]),
        "expected": change.expected,
        "facts": [
            [sanitize.name(fact.name), bounded(fact.old), bounded(fact.new), fact.rank] for fact in change.facts[:50]
        ],
        "texts": [list(text) for text in change.texts()[:8]],
    }


def describe(run: Loaded) -> dict[str, Any]:
    """A run's header, as pages and JSON show it."""
    return {
        "label": run.label,
        "file": sanitize.name(run.path.name),
        "suite": run.suite,
        "commit": sanitize.name(run.header.get("commit")),
        "started": run.started,
        "torch": run.torch,
        "python": sanitize.name(run.env.get("python")),
        "machine": " ".join(part for part in run.machine if part),
        "backends": {sanitize.name(backend): run.versions(backend) for backend in run.env.get("backends", {})},
        "argv": [sanitize.name(word) for word in run.header.get("argv", [])[:50]],
        "cells": len(run.cells),
    }


# ---------------------------------------------------------------------------------------------- history


def history_blocks(history: History, everything: bool = False, most: int = 200) -> Iterator[Block]:
    yield Heading("History", 2)
    yield Paragraph(Span(history.sentence(), "strong"))
    for columns in history.matrix.series():
        versions = " → ".join(column.version or "unknown" for column in columns)
        yield Paragraph(
            [Span(" ".join(part for part in columns[0].series if part), "strong"), " ", Span(versions, "", 400)], "-"
        )
    for problem in history.matrix.problems[:10]:
        yield Paragraph(Span(problem, "yellow", 400), "!")
    arrivals = history.arrivals(everything)
    for rank in CLASSES:
        found = [one for one in arrivals if one.cause.rank == rank]
        if not found:
            continue
        seen = CLASS_LOOKS[rank]
        yield Heading([Span(f"{seen.sign} {seen.word}: {counted(len(found), 'cause')}", seen.style)], 3)
        rows: list[list[Cell]] = [
            [
                one.new or "unknown",
                one.cause.stage,
                Span(one.cause.headline, "", 400),
                f"{one.compiles}",
                Span(", ".join(dict.fromkeys("/".join(column[:2]) for column in one.columns)), "", 120),
                Span(one.cause.example.place.micrograph, "code"),
            ]
            for one in found[:most]
        ]
        yield Table(
            ["since", "first stage", "what moved there", "compiles", "where", "for example"], rows, frozenset({3})
        )
        if len(found) > most:
            yield Paragraph(Span(f"and {len(found) - most} more", "soft"))
    yield from _flaky(history)
    for step in history.steps:
        for one in step.diff.uncompared[:2]:
            where = f"{step.new.label} since {step.old.version}"
            yield Paragraph(Span(f"not compared: {where}: {counted(one.cells, 'cell')}: {one.reason}", "soft", 400))


def _flaky(history: History) -> Iterator[Block]:
    if not history.matrix.flaky:
        return
    yield Heading(f"~ flaky: {counted(len(history.matrix.flaky), 'cell')}", 3)
    yield Paragraph(Span("another verdict with the same versions, machine, suite and micrograph", "soft"))
    rows: list[list[Cell]] = [
        [
            Span("/".join(key.place), "code", 160),
            " ".join(f"{look(word).sign} {word}" for word in words),
            key.column.version,
        ]
        for key, words in list(history.matrix.flaky.items())[:50]
    ]
    yield Table(["cell", "verdicts", "version"], rows)


def history_json(history: History) -> dict[str, Any]:
    return {
        "schema": "conformance-history/2",
        "records": [describe(run) for run in history.matrix.runs],
        "problems": history.matrix.problems,
        "series": [
            {
                **dict(zip(("backend", "target", "machine"), columns[0].series, strict=True)),
                "versions": [c.version for c in columns],
            }
            for columns in history.matrix.series()
        ],
        "causes": [
            {"since": one.new, "before": one.old, "columns": [column.label for column in one.columns]}
            | {**cause_json(one.cause), "compiles": _names(one.causes)}
            for one in history.arrivals(bookkeeping=True)
        ],
        "flaky": [{"cell": "/".join(key.place), "verdicts": words} for key, words in history.matrix.flaky.items()],
    }


def _names(causes: Iterable[Cause]) -> list[str]:
    return sorted({"/".join(one.place[1:]) for cause in causes for one in cause.compiles})
