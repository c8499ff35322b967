"""`conformance triage`, `bisect`, `selftest`, `expect`."""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from conformance.cell import Cell
from conformance.errors import UsageError, unknown
from conformance.library import load
from conformance.triage.command import triage


# -------------------------------------------------------------------------------------------- selftest


@click.command("selftest")
@click.option("--only", multiple=True, metavar="GLOB", help="only these faults, by name, stage or backend")
@click.option("--list", "listing", is_flag=True, help="list the faults and stop")
@click.option(
    "--baseline/--no-baseline", default=False, help="hold observations against recorded runs too (off: contracts and ladder alone)"
)
@click.option("--clean/--no-clean", default=True, help="look for false alarms without a fault, too")
@click.option("--culprits", is_flag=True, help="not the suite but triage, with wrong-result faults: is the culprit named, too?")
@click.option("-n", "workers", type=click.IntRange(1), default=1, metavar="N", help="this many worker processes")
@click.option("--record", type=click.Path(path_type=Path), help="keep every answer here as it comes (JSON Lines)")
@click.option("--resume", is_flag=True, help="leave out what the record has already")
@click.option("--table", type=click.Path(path_type=Path), help="write the table of the record into this Markdown file")
def selftest(
    only: tuple[str, ...],
    listing: bool,
    baseline: bool,
    clean: bool,
    culprits: bool,
    workers: int,
    record: Path | None,
    resume: bool,
    table: Path | None,
) -> int:
    """Break the compilers on purpose; see whether the suite notices, and where it points."""
    from conformance import seeded
    from conformance.seeded import selftest as runner
    from conformance.seeded.scoreboard import Board

    faults = {name: fault for name, fault in seeded.all_faults().items() if not culprits or _triaged(fault)}
    for glob in only:
        if not any(_chosen(fault, glob) for fault in faults.values()):
            raise unknown("seeded fault", glob, faults)
    names = [name for name, fault in faults.items() if not only or any(_chosen(fault, glob) for glob in only)]
    if listing:
        Console().print(_catalogue([faults[name] for name in names]))
        return 0
    if resume and record is None:
        raise UsageError("--resume goes on with a record: name it with --record FILE")
    board = Board(record)
    todo = [*names, *(runner.cases(faults[name] for name in names) if clean and not culprits else ())]
    left = board.left(todo) if resume else todo
    console = Console(stderr=True)
    for number, one in enumerate(runner.run(left, baseline=baseline, culprits=culprits, workers=workers), 1):
        board.keep(one)
        console.print(f"{number}/{len(left)} {one.fault}: {_said(one)}", style="dim", markup=False)
    answers = [board.known[name] for name in todo if name in board.known]
    known = [one for one in board.known.values() if one.clean or one.fault in faults]
    return _culprits(answers, known, faults, table) if culprits else _verdict(answers, known, faults, table)


def _triaged(fault: Any) -> bool:
    """A wrong result in Inductor's program for the CPU, for which it is known what triage must name."""
    return bool(fault.culprit) and (fault.backend, fault.target) == ("inductor", "cpu") and "wrong_result" in {k.value for k in fault.kinds}


def _said(one: Any) -> str:
    if one.unavailable:
        return f"not here: {one.unavailable}"
    if one.clean:
        return f"{len(one.alarms)} false alarms, {one.seconds:.0f} s"
    return f"{one.stage or 'nothing'} {one.kind}, {one.seconds:.0f} s"


def _chosen(fault: Any, glob: str) -> bool:
    return any(fnmatchcase(text, glob) for text in (fault.name, fault.stage.value, fault.backend, fault.target))


def _catalogue(faults: list[Any]) -> Table:
    table = Table("fault", "stage", "kind", "backend", "what the compiler does wrong", title=f"{len(faults)} seeded faults")
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
        table.add_row(one.fault, fault.stage.value, f"{sign} {one.stage or 'not found'}", one.kind, one.micrograph, f"{one.seconds:.0f}")
    console = Console()
    console.print(table)
    for one in score.unavailable:
        console.print(f"{one.fault}: not seeded here: {one.unavailable}", style="dim", markup=False)
    for line in [*score.lines(), *(f"  {alarm}" for alarm in score.alarms)]:
        console.print(line, markup=False)
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
        table.add_row(one.fault, f"{fault.stage.value}, {fault.culprit}", one.stage, f"{sign} {one.culprit}", shrunk, f"{one.seconds:.0f}")
    console = Console()
    console.print(table)
    console.print(naming.line(), markup=False)
    if document is not None:
        scoreboard.write(document, "culprits", scoreboard.Naming(known, faults).markdown())
    return 0 if naming.enough else 1


# ---------------------------------------------------------------------------------------------- bisect


@click.command("bisect")
@click.argument("cell")
@click.option("--good", required=True, metavar="V", help="a version (for AutoDeploy: a commit) where the cell was right")
@click.option("--bad", required=True, metavar="V", help="one where it is not")
@click.option("--fact", help="search by this fact of the observation (kernels, matches …) and not by the verdict")
@click.option("--versions", metavar="LIST", help="the versions to search, comma-separated (default: those on PyPI)")
@click.option("--wheels", type=click.Path(path_type=Path, exists=True), help="a folder of wheels to search and install from")
@click.option("--index-url", metavar="URL", help="install from this index (nightlies)")
@click.option("--with", "beside", multiple=True, metavar="REQ", help="install this too, e.g. triton==3.8.0")
@click.option("--python", "pythons", multiple=True, metavar="V=PATH", help="a Python that has this version already")
@click.option(
    "--source", type=click.Path(path_type=Path), help="AutoDeploy: the TensorRT-LLM checkout whose commits to search (or TRTLLM_SRC)"
)
@click.option("--micrographs", "folder", metavar="DIR", help="your own micrographs")
def bisect(
    cell: str,
    good: str,
    bad: str,
    fact: str | None,
    versions: str | None,
    wheels: Path | None,
    index_url: str | None,
    beside: tuple[str, ...],
    pythons: tuple[str, ...],
    source: Path | None,
    folder: str | None,
) -> int:
    """Between which two versions did a cell move?"""
    from conformance.triage import bisect as searching

    wanted = Cell.parse(cell)
    _known_cell(wanted, folder)
    console = Console()
    memory = searching.Memory(wanted)

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    if wanted.backend == "autodeploy":
        listed, ask_one = _over_commits(wanted, good, bad, source, folder)
    else:
        listed, ask_one = _over_wheels(wanted, good, bad, versions, wheels, index_url, beside, pythons, folder, say)
    say(f"{len(listed)} to search: {', '.join(v[:12] for v in listed)}" if len(listed) < 20 else f"{len(listed)} to search")

    def answer(version: str) -> Any:
        if version in memory.known and not memory.known[version].skipped:
            return memory.known[version]
        found = ask_one(version)
        memory.keep(found)
        return found

    found = searching.search(listed, answer, fact, say)
    say(f"last like {listed[0][:12]}: {found.good.version[:12]}    first unlike it: {found.bad.version[:12]}")
    for line in found.moved():
        say(f"  {line}")
    say(f"{len(found.asked)} versions asked")
    return 0


def _known_cell(cell: Cell, folder: str | None) -> None:
    from conformance import backends

    if cell.backend not in backends.names():
        raise unknown("backend", cell.backend, backends.names())
    library = load(folder)
    if cell.micrograph not in library:
        raise unknown("micrograph", cell.micrograph, library)


def _over_wheels(
    cell: Cell,
    good: str,
    bad: str,
    versions: str | None,
    wheels: Path | None,
    index_url: str | None,
    beside: tuple[str, ...],
    pythons: tuple[str, ...],
    folder: str | None,
    say: Any,
) -> tuple[list[str], Any]:
    from conformance.triage import bisect as searching

    package = searching.PACKAGES.get(cell.backend, "torch")
    known = _pythons(pythons)
    options = [*(["--find-links", str(wheels)] if wheels else []), *(["--index-url", index_url] if index_url else [])]
    if versions:
        listed = [v.strip() for v in versions.split(",") if v.strip()]
    elif wheels:
        listed = searching.in_folder(package, wheels)
    else:
        listed = searching.released(package)
    environments = searching.Environments(package, beside, known, options, say)

    def ask_one(version: str) -> Any:
        try:
            python = environments.python(version)
        except LookupError as error:
            return searching.Answer(version, skipped=f"does not install: {error}")
        return searching.ask(python, version, cell, {}, folder)

    return searching.between(listed, good, bad), ask_one


def _pythons(given: tuple[str, ...]) -> dict[str, str]:
    known = {}
    for text in given:
        version, _, path = text.partition("=")
        if not path or not Path(path).exists():
            raise UsageError(f"--python takes VERSION=PATH of a Python that exists; got {text!r}")
        known[version] = path
    return known


def _over_commits(cell: Cell, good: str, bad: str, source: Path | None, folder: str | None) -> tuple[list[str], Any]:
    from conformance.triage import bisect as searching

    root = source or (Path(os.environ["TRTLLM_SRC"]) if os.environ.get("TRTLLM_SRC") else None)
    if root is None or not (root / ".git").exists():
        raise UsageError("AutoDeploy is searched over commits: give --source DIR, a git checkout of TensorRT-LLM (or TRTLLM_SRC)")

    def ask_one(commit: str) -> Any:
        try:
            tree = searching.worktree(root, commit)
        except LookupError as error:
            return searching.Answer(commit, skipped=str(error))
        return searching.ask(sys.executable, commit, cell, {"TRTLLM_SRC": str(tree)}, folder)

    return searching.commits(root, good, bad), ask_one


# ---------------------------------------------------------------------------------------------- expect


@click.command("expect")
@click.argument("cell")
@click.option("--url", help="where upstream knows of it")
@click.option("--repro", type=click.Path(path_type=Path), help="or a repro of our own")
@click.option("--when", default=None, help="versions, e.g. 'torch>=2.14,<2.15' (default: the minor version that runs now)")
@click.option("--why", help="one sentence (default: the finding's own)")
@click.option("--record", type=click.Path(path_type=Path), help="take the finding from this record, without running the cell")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="the file to add to (default: fixtures/expectations/<backend>.toml)")
def expect(cell: str, url: str | None, repro: Path | None, when: str | None, why: str | None, record: Path | None, out: Path | None) -> int:
    """Turn a finding into an expectation, with its URL and versions."""
    from conformance.triage.expect import add

    if not url and not repro:
        raise UsageError("an expectation needs --url (where upstream knows of it) or --repro (a file that shows it)")
    if repro and not repro.exists():
        raise UsageError(f"no repro {repro}")
    file, entry = add(Cell.parse(cell), url, repro, when, why, record, out)
    Console().print(f"{file}:\n{entry}", markup=False, highlight=False)
    return 0


COMMANDS = [triage, bisect, selftest, expect]
