"""`conformance selftest`, `expect`, `judge`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from conformance.cell import Cell
from conformance.command_options import micrograph_globs
from conformance.errors import UsageError, unknown
from conformance.report.document import console

# -------------------------------------------------------------------------------------------- selftest


FAULTS_A_STAGE = 2  # for --ci


@click.command("selftest")
@click.option("--only", multiple=True, metavar="GLOB", help="only these faults, by name, stage or backend")
@click.option("--list", "listing", is_flag=True, help="list the faults and stop")
@click.option(
    "--baseline/--no-baseline",
    default=False,
    help="hold observations against recorded runs too (off: contracts and ladder alone)",
)
@click.option("--clean/--no-clean", default=True, help="look for false alarms without a fault, too")
@click.option(
    "--culprits", is_flag=True, help="not the suite but triage, with wrong-result faults: is the culprit named, too?"
)
@click.option(
    "--ci",
    is_flag=True,
    help=f"only {FAULTS_A_STAGE} faults a stage, of Inductor on the CPU (--moved: 3 changes): minutes, not an hour",
)
@click.option(
    "--moved",
    is_flag=True,
    help="not the suite but `diff`: record micrographs without and with changes of every stage; is each named at its stage?",
)
@click.option("-n", "workers", type=click.IntRange(1), default=1, metavar="N", help="this many worker processes")
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    help="keep every answer here as it comes (JSON Lines); with --moved: the folder of the records",
)
@click.option("--resume", is_flag=True, help="leave out what the record has already")
@click.option("--table", type=click.Path(path_type=Path), help="write the table of the record into this Markdown file")
def selftest(
    only: tuple[str, ...],
    listing: bool,
    baseline: bool,
    clean: bool,
    culprits: bool,
    ci: bool,
    moved: bool,
    workers: int,
    record: Path | None,
    resume: bool,
    table: Path | None,
) -> int:
    """Break the compilers on purpose; see whether the suite notices, and where it points."""
    if moved:
        return _moved(only, listing, ci, workers, record, table)
    from conformance import seeded
    from conformance.seeded import selftest as runner
    from conformance.seeded.scoreboard import Board

    faults = {name: fault for name, fault in seeded.all_faults().items() if not culprits or _triaged(fault)}
    for glob in only:
        if not any(_chosen(fault, glob) for fault in faults.values()):
            raise unknown("seeded fault", glob, faults)
    names = [name for name, fault in faults.items() if not only or any(_chosen(fault, glob) for glob in only)]
    if ci:
        names = _for_ci([faults[name] for name in names])
    if listing:
        console().print(_catalogue([faults[name] for name in names]))
        return 0
    if resume and record is None:
        raise UsageError("--resume goes on with a record: name it with --record FILE")
    board = Board(record)
    todo = [*names, *(runner.cases(faults[name] for name in names) if clean and not culprits else ())]
    left = board.left(todo) if resume else todo
    progress = console(stderr=True)
    for number, one in enumerate(runner.run(left, baseline=baseline, culprits=culprits, workers=workers), 1):
        board.keep(one)
        progress.print(f"{number}/{len(left)} {one.fault}: {_said(one)}", style="dim", markup=False)
    answers = [board.known[name] for name in todo if name in board.known]
    known = [one for one in board.known.values() if one.clean or one.fault in faults]
    return _culprits(answers, known, faults, table) if culprits else _verdict(answers, known, faults, table)


def _for_ci(faults: list[Any]) -> list[str]:
    """The first few of each stage that need nothing but torch."""
    found: dict[str, list[str]] = {}
    for fault in faults:
        if (fault.backend, fault.target) == ("inductor", "cpu"):
            found.setdefault(fault.stage.value, []).append(fault.name)
    return [name for names in found.values() for name in names[:FAULTS_A_STAGE]]


def _triaged(fault: Any) -> bool:
    """A wrong result in Inductor's program for the CPU, for which it is known what triage must name."""
    return (
        bool(fault.culprit)
        and (fault.backend, fault.target) == ("inductor", "cpu")
        and "wrong_result" in {k.value for k in fault.kinds}
    )


def _said(one: Any) -> str:
    if one.unavailable:
        return f"not here: {one.unavailable}"
    if one.clean:
        return f"{len(one.alarms)} false alarms, {one.seconds:.0f} s"
    return f"{one.stage or 'nothing'} {one.kind}, {one.seconds:.0f} s"


def _chosen(fault: Any, glob: str) -> bool:
    return any(fnmatchcase(text, glob) for text in (fault.name, fault.stage.value, fault.backend, fault.target))


def _catalogue(faults: list[Any]) -> Table:
    table = Table(
        "fault", "stage", "kind", "backend", "what the compiler does wrong", title=f"{len(faults)} seeded faults"
    )
    for fault in faults:
        kinds = ", ".join(kind.value for kind in fault.kinds)
        table.add_row(fault.name, fault.stage.value, kinds, f"{fault.backend} {fault.target}", fault.what)
    return table


def _verdict(answers: list[Any], known: list[Any], faults: dict[str, Any], document: Path | None) -> int:
    from conformance.seeded import scoreboard

    score = scoreboard.Score(answers, faults)
    table = Table("fault", "seeded in", "found in", "kind", "micrograph", "s", title="seeded faults")
    for one in score.asked:
        fault = faults[one.fault]
        sign = "✓" if one.right_stage(fault) else "✗"
        table.add_row(
            one.fault,
            fault.stage.value,
            f"{sign} {one.stage or 'not found'}",
            one.kind,
            one.micrograph,
            f"{one.seconds:.0f}",
        )
    out = console()
    out.print(table)
    for one in score.unavailable:
        out.print(f"{one.fault}: not seeded here: {one.unavailable}", style="dim", markup=False)
    for line in [*score.lines(), *(f"  {alarm}" for alarm in score.alarms)]:
        out.print(line, markup=False)
    if document is not None:
        scoreboard.write(document, "selftest", scoreboard.detections(scoreboard.Score(known, faults)))
    return 0 if score.enough else 1


def _culprits(answers: list[Any], known: list[Any], faults: dict[str, Any], document: Path | None) -> int:
    from conformance.seeded import scoreboard

    naming = scoreboard.Naming(answers, faults)
    table = Table("fault", "seeded in", "found in", "culprit", "nodes", "s", title="what triage names")
    for one in naming.asked:
        fault = faults[one.fault]
        sign = "✓" if naming.named(one) else "✗"
        shrunk = " → ".join(map(str, one.nodes)) or "–"
        table.add_row(
            one.fault,
            f"{fault.stage.value}, {fault.culprit}",
            one.stage,
            f"{sign} {one.culprit}",
            shrunk,
            f"{one.seconds:.0f}",
        )
    out = console()
    out.print(table)
    out.print(naming.line(), markup=False)
    if document is not None:
        scoreboard.write(document, "culprits", scoreboard.Naming(known, faults).markdown())
    return 0 if naming.enough else 1


def _moved(
    only: tuple[str, ...], listing: bool, ci: bool, workers: int, folder: Path | None, document: Path | None
) -> int:
    """With --only, whichever changes and faults of Inductor on the CPU are named; else the changes and a fault a stage."""
    import tempfile

    from conformance.seeded import movement, scoreboard

    known = {one.name: one for one in movement.changes(faults=None)}
    for glob in only:
        if not any(_chosen(one, glob) for one in known.values()):
            raise unknown("seeded change", glob, known)
    chosen = [one for one in known.values() if any(_chosen(one, glob) for glob in only)] or movement.changes()
    if ci:
        chosen = [known[name] for name in movement.CI]
    if listing:
        console().print(_catalogue(chosen))
        return 0
    progress, answers = console(stderr=True), []
    with tempfile.TemporaryDirectory() as temporary:
        for answer in movement.run(chosen, folder or Path(temporary), workers, 1 if ci else movement.MICROGRAPHS):
            answers.append(answer)
            told = answer.unavailable or f"{answer.named}: {answer.text or 'the same'}, {answer.seconds:.0f} s"
            progress.print(f"{len(answers)}/{len(chosen)} {answer.change.name}: {told}", style="dim", markup=False)
    table = Table("change", "made in", "the diff names", "what moved there", title="what `diff` names")
    for answer in answers:
        sign = "·" if answer.unavailable else "✓" if answer.right else "✗"
        shown = answer.unavailable or answer.text
        table.add_row(answer.change.name, answer.wanted, f"{sign} {answer.named}", shown)
    console().print(table)
    if document is not None:
        scoreboard.write(document, "moved", movement.markdown(answers))
    return 0 if all(answer.right for answer in answers if not answer.unavailable) else 1


# ---------------------------------------------------------------------------------------------- expect


@click.command("expect")
@click.argument("subjects", metavar="RECORD…|CELL", nargs=-1, required=True)
@click.option("--url", help="where upstream knows of it (default: the micrograph's own report)")
@click.option(
    "--repro",
    type=click.Path(path_type=Path),
    help="or a repro of our own; of records of operators: the folder with a script for each",
)
@click.option("--why", help="one sentence (default: the finding's own)")
@micrograph_globs("of records: only these micrographs", "*")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="of records: the folder to bring up to date (default: the suite's)",
)
@click.option("-y", "--yes", is_flag=True, help="of records: write without asking")
@click.option(
    "--when",
    default=None,
    help="of a cell: versions, e.g. 'torch>=2.14,<2.15' (default: the minor version that runs now)",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    help="of a cell: take the finding from this record, without running the cell",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="of a cell: the file to add to (default: <backend>.toml)"
)
def expect(
    subjects: tuple[str, ...],
    url: str | None,
    repro: Path | None,
    why: str | None,
    globs: tuple[str, ...],
    folder: Path | None,
    yes: bool,
    when: str | None,
    record: Path | None,
    out: Path | None,
) -> int:
    """Turn findings into expectations: of one cell, or of the records of several releases, which are also brought up to date."""
    if repro and not repro.exists():
        raise UsageError(f"no repro {repro}")
    if len(subjects) > 1 or Path(subjects[0]).is_file():
        named = f'url = "{url}"' if url else f'repro = "{repro}"' if repro else ""
        link = repro if repro and repro.is_dir() and not url else named
        return _expect_records([Path(one) for one in subjects], folder, globs, link, why or "", yes)
    from conformance.triage.expect import add

    if not url and not repro:
        raise UsageError("an expectation needs --url (where upstream knows of it) or --repro (a file that shows it)")
    file, entry = add(Cell.parse(subjects[0]), url, repro, when, why, record, out)
    console().print(f"{file}:\n{entry}", markup=False, highlight=False)
    return 0


def _expect_records(
    records: list[Path], folder: Path | None, globs: tuple[str, ...], link: Path | str, why: str, yes: bool
) -> int:
    """Show what would change, then write it."""
    import difflib

    from conformance import paths
    from conformance.triage.expect_records import changes

    changed, linkless = changes(records, folder or paths.expectations(), globs, link, why)
    for file, after in changed.items():
        before = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
        click.echo(
            "".join(
                difflib.unified_diff(before, after.splitlines(keepends=True), f"{file.name} now", f"{file.name} then")
            )
        )
    for cell in linkless:
        click.echo(
            f"left out: {cell} fails and names no report; give --url or --repro, with -m for its micrograph", err=True
        )
    if not changed:
        click.echo("nothing to change: the expectations say what the records show")
    elif yes or click.confirm(f"write {len(changed)} file{'s' * (len(changed) > 1)}?", default=True):
        for file, after in changed.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(after, encoding="utf-8")
    return 1 if linkless else 0


# ----------------------------------------------------------------------------------------------- judge


@click.command("judge")
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@click.option(
    "--expectations",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="the expectations to use (default: the suite's)",
)
def judge(records: tuple[Path, ...], folder: Path | None) -> int:
    """Judge records by the checks, contracts and expectations of now, without running anything; they are written anew."""
    from conformance.environment import commit
    from conformance.judge_record import judge_again
    from conformance.library import load

    unexpected, library = 0, load()
    for record in records:
        changed, before, after = judge_again(record, library, folder, commit())
        click.echo(f"{record}: {changed} cells changed; unexpected: {before} before, {after} now")
        unexpected += after
    return 1 if unexpected else 0


COMMANDS = [selftest, expect, judge]
