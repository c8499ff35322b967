"""The commands that read records: `matrix`, `diff`, `history`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from conformance.errors import UsageError
from conformance.report.annotations import annotations as annotated
from conformance.report.columns import bounded
from conformance.report.diff import Swap, compare
from conformance.report.history import records, trace
from conformance.report.junit import write_junit
from conformance.report.load import Loaded, findings, load, mapping
from conformance.report.markdown import matrix_markdown
from conformance.report.matrix import Matrix, combine
from conformance.report.page import describe, write_page
from conformance.report.render_diff import DiffTable, diff_json, diff_markdown, diff_page
from conformance.report.render_history import HistoryTable, history_json, history_markdown, history_page
from conformance.report.terminal import matrix_table

FILE = click.Path(path_type=Path)
Writer = Callable[[Path], object]


@click.command()
@click.argument("records", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", type=FILE, help="matrix.html, .md, .json, or .xml (JUnit); without it, the terminal.")
@click.option("--title", default="Compatibility matrix", show_default=True)
@click.option("--evidence/--no-evidence", default=True, help="Whether a large page gets a folder of evidence beside it.", show_default=True)
@click.option("--annotations", "annotate", is_flag=True, help="Print GitHub workflow commands for what is unexpected.")
def matrix(records: tuple[Path, ...], output: Path | None, title: str, evidence: bool, annotate: bool) -> None:
    """The compatibility matrix of one or more RECORDS."""
    made = combine(load(records))
    _warn(made.problems)
    if output is None:
        Console().print(matrix_table(merged(made).cells))
    else:
        _write(
            output,
            {
                ".html": lambda path: write_page(made, path, title, evidence),
                ".md": _text(lambda: matrix_markdown(made, title)),
                ".json": _text(lambda: _json(matrix_json(made))),
                ".xml": lambda path: write_junit(merged(made), path),
            },
        )
    if annotate:
        for line in annotated(merged(made), micrographs=_near(Path("fixtures/micrographs"))):
            click.echo(line)


@click.command()
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("-o", "--output", type=FILE, help="diff.html, .md or .json; without it, the terminal.")
@click.option("--fail-on", type=click.Choice(["regression", "moved"]), help="Exit with 1 when there is one.")
@click.option("-b", "--backend", metavar="OLD[:NEW]", help="Compare one backend; with OLD:NEW, one with another.")
@click.option("-t", "--target", metavar="OLD[:NEW]", help="Compare one target; with OLD:NEW, one with another.")
def diff(old: Path, new: Path, output: Path | None, fail_on: str | None, backend: str | None, target: str | None) -> None:
    """Which stage moved between the records OLD and NEW."""
    (before,), (after,) = load([old]), load([new])
    found = compare(before, after, Swap.parse(backend) if backend else None, Swap.parse(target) if target else None)
    if output is None:
        Console().print(DiffTable(found))
    else:
        _write(
            output,
            {
                ".html": _text(lambda: diff_page(found)),
                ".md": _text(lambda: diff_markdown(found)),
                ".json": _text(lambda: _json(diff_json(found))),
            },
        )
        _warn(found.warnings)
        click.echo(found.sentence())
    bad = len(found.regressions) + (found.count("moved") if fail_on == "moved" else 0)
    if fail_on and bad:
        click.echo(f"{bad} compiles {'moved' if fail_on == 'moved' else 'regressed'}", err=True)
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("folder", type=FILE)
@click.option("-o", "--output", type=FILE, help="history.html, .md or .json; without it, the terminal.")
def history(folder: Path, output: Path | None) -> None:
    """What changed over the records of a FOLDER, by version; flaky cells are marked."""
    found = trace(load(records(folder)))
    if output is None:
        Console().print(HistoryTable(found))
    else:
        _write(
            output,
            {
                ".html": _text(lambda: history_page(found)),
                ".md": _text(lambda: history_markdown(found)),
                ".json": _text(lambda: _json(history_json(found))),
            },
        )
        _warn(found.problems)
        click.echo(found.sentence())


COMMANDS: list[click.Command] = [matrix, diff, history]


def merged(made: Matrix) -> Loaded:
    """The newest cells of a matrix as one run, for the formats that know no versions."""
    last = made.runs[-1]
    latest = set(made.latest())
    return Loaded(last.path, last.header, {entry.name: entry.line for key, entry in made.entries.items() if key.column in latest})


def matrix_json(made: Matrix) -> dict[str, Any]:
    return {
        "schema": "conformance-matrix/1",
        "runs": [describe(run) for run in made.runs],
        "problems": made.problems,
        "totals": {
            " ".join(column).strip(): {stage: dict(total.verdicts) for stage, total in stages.items()}
            for column, stages in made.totals().items()
        },
        "flaky": [f"{key.stage}/{key.column.backend}/{key.column.target}/{key.micrograph}" for key in made.flaky],
        "cells": [
            {
                "cell": entry.name,
                "version": key.column.variant,
                "verdict": entry.verdict,
                "reason": bounded(entry.line.get("reason") or ""),
                "findings": [dict(zip(("kind", "check", "detail"), one, strict=True)) for one in findings(entry.line)],
                "observation": bounded(mapping(entry.line.get("observation"))),
            }
            for key, entry in made.entries.items()
        ],
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"


def _text(make: Callable[[], str]) -> Writer:
    return lambda path: path.write_text(make(), encoding="utf-8")


def _write(path: Path, writers: Mapping[str, Writer]) -> None:
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise UsageError(f"cannot write {path}: its name must end in {', '.join(writers)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def _warn(problems: list[str], most: int = 10) -> None:
    for problem in problems[:most]:
        click.echo(f"warning: {problem}", err=True)
    if len(problems) > most:
        click.echo(f"warning: and {len(problems) - most} more", err=True)


def _near(folder: Path) -> Path | None:
    return folder if folder.is_dir() else None
