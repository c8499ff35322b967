"""A diff as Markdown (short enough for a GitHub comment), as JSON, as a page, and in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from conformance.report import sanitize
from conformance.report.ascii_fallback import Shown
from conformance.report.columns import bounded
from conformance.report.diff import CLASSES, Change, Diff, Row
from conformance.report.diff import Group as Cause
from conformance.report.load import Loaded, plain_version
from conformance.report.markdown import about, code, escape, table
from conformance.report.page import describe, render

COMMENT = 60_000  # GitHub takes 65,536 characters
SIGNS = {"regressed": "✗", "fixed": "✓", "moved": "→", "new": "+", "gone": "−", "reworded": "~"}
MEANINGS = {
    "regressed": "a verdict got worse, or a number went the wrong way (more kernels, fewer matches)",
    "fixed": "it passes now",
    "moved": "same quality of verdict, other observation",
    "new": "only the new run has it, or could see it",
    "gone": "only the old run had it, or could see it",
    "reworded": "only text moved: digests and keys, with the same counts",
}
STYLES = {"regressed": "bold red", "fixed": "green", "moved": "yellow", "new": "blue", "gone": "blue", "reworded": "dim"}
PAGE_ROWS = 3_000


# ------------------------------------------------------------------------------------------- Markdown


def diff_markdown(diff: Diff, limit: int = COMMENT) -> str:
    """As many groups as fit; what is left out is counted."""
    kept: list[str] = []
    used = 0
    blocks = list(_blocks(diff))
    for index, block in enumerate(blocks):
        if used + len(block) > limit - 200:
            kept.append(f"\n… and {len(blocks) - index} more groups; `conformance diff OLD NEW -o diff.html` shows them all.")
            break
        kept.append(block)
        used += len(block) + 1
    return "\n".join(kept) + "\n"


def _blocks(diff: Diff) -> Iterator[str]:
    yield f"## Conformance: {escape(title(diff))}\n"
    yield f"**{escape(diff.sentence())}.** {diff.same:,} cells are the same.\n\n- old: {about(diff.old)}\n- new: {about(diff.new)}"
    for warning in diff.warnings[:20]:
        yield f"- ⚠ {escape(warning)}"
    for kind in CLASSES:
        groups = [group for group in diff.groups if group.kind == kind]
        if not groups:
            continue
        yield f"\n### {SIGNS[kind]} {kind}: {diff.count(kind):,} compiles\n\n{MEANINGS[kind]}.\n"
        if kind == "reworded":
            yield from _brief(groups)
        else:
            for group in groups:
                yield "\n".join(_group(group))


def _brief(groups: list[Cause]) -> Iterator[str]:
    rows = [[code(group.backend), escape(group.stage), escape(group.cause), str(len(group.rows))] for group in groups[:20]]
    yield "\n".join(table(["backend", "first at", "what", "compiles"], rows))


def _group(group: Cause, most: int = 8) -> Iterator[str]:
    yield f"**{escape(group.backend)} · {escape(group.stage)}**: {escape(group.cause)} ({len(group.rows)})\n"
    rows = [[code(f"{row.micrograph} {row.target}", 120), escape(row.said(), 240) + _note(row)] for row in group.rows[:most]]
    yield from table(["compile", "what moved first"], rows)
    if len(group.rows) > most:
        yield f"\nand {len(group.rows) - most} more like these."
    yield ""


def _note(row: Row) -> str:
    if row.worst.remade:
        return " *(the micrograph was changed)*"
    return " *(expected)*" if row.worst.expected else ""


def title(diff: Diff) -> str:
    """`torch 2.11.0 → 2.15.0`, or the records' names where the versions are the same."""
    old, new = plain_version(_torch(diff.old)), plain_version(_torch(diff.new))
    return f"torch {old} → {new}" if old != new else f"{diff.old.label} → {diff.new.label}"


def _torch(run: Loaded) -> str:
    return sanitize.name(run.env.get("torch")) or "unknown"


# ------------------------------------------------------------------------------------------------ JSON


def diff_json(diff: Diff) -> dict[str, Any]:
    return {
        "schema": "conformance-diff/1",
        "old": describe(diff.old),
        "new": describe(diff.new),
        "warnings": diff.warnings,
        "compared": diff.compared,
        "same": diff.same,
        "compiles": {kind: diff.count(kind) for kind in CLASSES},
        "cells": diff.cells,
        "regressions": len(diff.regressions),
        "groups": [
            {"kind": g.kind, "backend": g.backend, "stage": g.stage, "cause": g.cause, "rows": [_row_json(row) for row in g.rows]}
            for g in diff.groups
        ],
    }


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "micrograph": row.micrograph,
        "backend": row.backend,
        "target": row.target,
        "kind": row.kind,
        "first": _change_json(row.first),
        "worst": row.worst.place.stage,
        "later": [_change_json(change) for change in row.later],
    }


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "stage": change.place.stage,
        "kind": change.kind,
        "old": change.old,
        "new": change.new,
        "reason": change.reason,
        "expected": change.expected,
        "remade": change.remade,
        "facts": [[sanitize.name(path), bounded(old), bounded(new)] for path, old, new in change.facts[:50]],
    }


# ------------------------------------------------------------------------------------------------ page


def diff_page(diff: Diff) -> str:
    room = PAGE_ROWS
    shown = []
    for group in diff.groups:
        rows = group.rows[: max(room, 0)]
        room -= len(rows)
        shown.append((group, rows, len(group.rows) - len(rows)))
    return render(
        "diff.html",
        title=title(diff),
        diff=diff,
        groups=shown,
        classes=CLASSES,
        signs=SIGNS,
        meanings=MEANINGS,
        runs=[describe(diff.old), describe(diff.new)],
    )


# -------------------------------------------------------------------------------------------- terminal


class DiffTable(Shown):
    """A line a group, the rows below it while they are few."""

    def __init__(self, diff: Diff, rows: int = 4) -> None:
        self.diff = diff
        self.rows = rows

    def parts(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        diff = self.diff
        yield Text(title(diff), style="bold")
        for warning in diff.warnings[:20]:
            yield Text(f"! {warning}", style="yellow")
        for kind in CLASSES:
            groups = [group for group in diff.groups if group.kind == kind]
            if groups:
                yield Text(f"\n{SIGNS[kind]} {kind}: {diff.count(kind):,} compiles", style=STYLES[kind])
                yield Group(*self._groups(groups))
        yield Text(f"\n{diff.sentence()}; {diff.same:,} cells are the same", style="bold")

    def _groups(self, groups: list[Cause]) -> Iterator[RenderableType]:
        for group in groups[:30]:
            yield Text(f"  {group.backend} · {group.stage}: {group.cause} ({len(group.rows)})")
            if group.kind == "reworded":
                continue
            grid = Table.grid(padding=(0, 2))
            for row in group.rows[: self.rows]:
                grid.add_row("   ", Text(f"{row.micrograph} {row.target}"), Text(row.said(), style="dim"))
            yield grid
            if len(group.rows) > self.rows:
                yield Text(f"      and {len(group.rows) - self.rows} more", style="dim")
        if len(groups) > 30:
            yield Text(f"  and {len(groups) - 30} more groups: -o diff.html shows them all", style="dim")
