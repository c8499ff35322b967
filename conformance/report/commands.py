"""The commands that read records: `matrix`, `diff`, `history`, `pack`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from conformance import sanitize
from conformance.errors import UsageError
from conformance.packed_texts import write_packed
from conformance.report import matrix_document, moved
from conformance.report.address import address
from conformance.report.annotations import annotations as annotated
from conformance.report.diff import LEVELS, Diff, Side, Swap, compare, sides
from conformance.report.document import Document, console, markdown
from conformance.report.history import record_files, trace
from conformance.report.junit import write_junit
from conformance.report.load import Loaded, load
from conformance.report.matrix import Matrix, combine
from conformance.report.style import counted
from conformance.report.terminal import matrix_table

FILE = click.Path(path_type=Path)
ANY_REVISION = click.option(
    "--any-revision",
    is_flag=True,
    help="Compare facts that two revisions of the suite made, too: the suite may have moved them.",
)
ALL = click.option("--all", "everything", is_flag=True, help="List bookkeeping too: guard names, metadata, digests.")


@click.command()
@click.argument("records", nargs=-1, required=True, type=FILE)
@click.option(
    "-o", "--output", type=FILE, help="Write FILE.html, .md, .json, or .xml (JUnit); without it, the terminal."
)
@click.option("--title", default="Which stage moved", show_default=True, help="Heading of the page or document.")
@click.option("--texts/--no-texts", default=True, show_default=True, help="Whether the page holds graphs and code.")
@click.option("--annotations", "annotate", is_flag=True, help="Print GitHub workflow commands for what is unexpected.")
@ANY_REVISION
def matrix(
    records: tuple[Path, ...], output: Path | None, title: str, texts: bool, annotate: bool, any_revision: bool
) -> None:
    """The compatibility matrix of one or more RECORDS (files or folders)."""
    found = combine(load(record_files(records)))
    _warn(found.problems)
    if output is None:
        console().print(matrix_table(merged(found).cells))
    else:
        _write(
            output,
            {
                ".html": lambda path: _page(found, path, title, texts=texts, any_revision=any_revision),
                ".md": _text(lambda: markdown(matrix_document.matrix_blocks(found, title))),
                ".json": _text(lambda: _json(matrix_document.matrix_json(found))),
                ".xml": lambda path: write_junit(merged(found), path),
            },
            f"{counted(len(found.entries), 'cell')} of {counted(len(found.runs), 'record')}",
        )
    if annotate:
        folder = Path("fixtures/micrographs")
        for line in annotated(merged(found), micrographs=folder if folder.is_dir() else None):
            click.echo(line)


@click.command()
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("-o", "--output", type=FILE, help="Write FILE.html, .md or .json; without it, the terminal.")
@click.option(
    "--fail-on",
    type=click.Choice(LEVELS),
    help="Exit with 1 for a cause of this class or a worse one; any: for every movement.",
)
@click.option("-b", "--backend", metavar="OLD[:NEW]", help="Compare one backend; with OLD:NEW, one with another.")
@click.option("-t", "--target", metavar="OLD[:NEW]", help="Compare one target; with OLD:NEW, one with another.")
@click.option("--brief", is_flag=True, help="Print the first screen only.")
@ALL
@ANY_REVISION
def diff(
    old: Path,
    new: Path,
    output: Path | None,
    fail_on: str | None,
    backend: str | None,
    target: str | None,
    brief: bool,
    everything: bool,
    any_revision: bool,
) -> None:
    """Which stage moved between the records OLD and NEW: ranked by cost, one line a cause."""
    (before,), (after,) = load([old]), load([new])
    left, right, notes = sides(before, after, Swap.parse(backend), Swap.parse(target))
    found = compare(left, right, any_revision)
    found.warnings[:0] = notes
    if output is None:
        _print(found, brief, everything)
    else:
        _write(
            output,
            {
                ".html": lambda path: _diff_page(found, before, after, right, path, any_revision),
                ".md": _text(lambda: markdown(moved.diff_blocks(found, everything), moved.COMMENT)),
                ".json": _text(lambda: _json(moved.diff_json(found))),
            },
            counted(len([cause for cause in found.causes if cause.rank != "bookkeeping"]), "cause"),
        )
        _warn(found.warnings)
    if fail_on and (bad := found.failing(fail_on)):
        click.echo(f"{counted(len(bad), 'cause')} at which --fail-on {fail_on} fails", err=True)
        raise click.exceptions.Exit(1)


def _print(found: Diff, brief: bool, everything: bool) -> None:
    out = console()
    blocks = moved.diff_blocks(found, everything, out.height if out.is_terminal else 40)
    out.print(Document(list(moved.first_screen(blocks) if brief else blocks)))


def _diff_page(found: Diff, before: Loaded, after: Loaded, right: Side, path: Path, any_revision: bool) -> None:
    """Each column of the old record beside the one of the new that it is compared with."""
    versions = [{(backend, run.version(backend)) for backend in run.backends} for run in (before, after)]
    both = combine([before, after], apart=("old", "new") if versions[0] & versions[1] else ("", ""))
    columns = {(entry.run, *key.column[:2]): key.column for key, entry in both.entries.items()}
    compared = {
        (place.column, own.column) for place, entry in right.items() if (own := address(entry.line["cell"])) is not None
    }
    pairs = [
        (columns[before, *one], columns[after, *other]) for one, other in sorted(compared) if (before, *one) in columns
    ]
    _page(both, path, moved.title(found), any_revision=any_revision, pairs=pairs)


@click.command()
@click.argument("records", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", type=FILE, help="Write FILE.html, .md or .json; without it, the terminal.")
@ALL
@ANY_REVISION
def history(records: tuple[Path, ...], output: Path | None, everything: bool, any_revision: bool) -> None:
    """With which version each cause came, over the RECORDS (files or folders); flaky cells are marked."""
    found = combine(load(record_files(records)))
    traced = trace(found, any_revision)
    if output is None:
        console().print(Document(list(moved.history_blocks(traced, everything))))
        return
    _write(
        output,
        {
            ".html": lambda path: _page(found, path, any_revision=any_revision),
            ".md": _text(lambda: markdown(moved.history_blocks(traced, everything))),
            ".json": _text(lambda: _json(moved.history_json(traced))),
        },
        traced.sentence(),
    )
    _warn(found.problems)


@click.command()
@click.argument("records", nargs=-1, required=True, type=FILE)
def pack(records: tuple[Path, ...]) -> None:
    """Pack the long texts of each of the RECORDS into one file beside it, NAME.texts.xz, to be published with it."""
    for run in load(record_files(records)):
        wanted = {key for line in run.cells.values() for key in line["texts"].values()}
        found = {key: text for key in sorted(wanted) if (text := run.text(key)) is not None}
        if not found:
            raise UsageError(
                f"no texts beside {run.path}: `conformance run --record` writes them into {run.path.stem}.texts"
            )
        try:
            file = write_packed(run.path, found.values())
        except OSError as error:
            raise UsageError(f"cannot write the texts of {run.path}: {error.strerror or error}") from None
        missing = f", {counted(len(wanted) - len(found), 'text')} missing" if len(found) < len(wanted) else ""
        click.echo(
            f"wrote {sanitize.line(file)}: {counted(len(found), 'text')}{missing}, {file.stat().st_size:,} bytes"
        )


COMMANDS: list[click.Command] = [matrix, diff, history, pack]


def merged(found: Matrix) -> Loaded:
    """The newest cells of a matrix as one run, for the formats that know no versions."""
    last, latest = found.runs[-1], set(found.latest())
    cells = {"/".join(key.place): entry.line for key, entry in found.entries.items() if key.column in latest}
    return Loaded(last.path, last.header, cells)


def _page(found: Matrix, path: Path, *args: Any, **options: Any) -> None:
    from conformance.report.page import write_page  # jinja2 is only needed here

    write_page(found, path, *args, **options)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _text(make: Callable[[], str]) -> Callable[[Path], object]:
    return lambda path: path.write_text(make(), encoding="utf-8")


def _write(path: Path, writers: Mapping[str, Callable[[Path], object]], what: str) -> None:
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise UsageError(f"cannot write {path}: its name must end in {', '.join(writers)}")
    if path.exists() and not path.is_file():
        raise UsageError(f"cannot write {path}: it is no regular file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    click.echo(f"wrote {sanitize.line(path)}: {what}, {path.stat().st_size:,} bytes")


def _warn(problems: list[str], most: int = 10) -> None:
    for problem in problems[:most]:
        click.echo(f"warning: {sanitize.line(problem, 400)}", err=True)
    if len(problems) > most:
        click.echo(f"warning: and {len(problems) - most} more", err=True)
