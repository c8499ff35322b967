"""`conformance bisect`: scripts over releases of torch, cells over releases of a compiler."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from conformance.cell import Cell
from conformance.errors import UsageError, unknown
from conformance.virtualenvs import Environments, install_options


@click.command("bisect")
@click.argument("cell", metavar="SCRIPT.py|FOLDER|CELL")
@click.option("--good", metavar="V", help="a version (for AutoDeploy: a commit) where the cell was right")
@click.option("--bad", metavar="V", help="one where it is not")
@click.option("--fact", help="search by this fact of the observation (kernels, matches …) and not by the verdict")
@click.option("--versions", metavar="LIST", help="the versions to search, comma-separated (default: those on PyPI)")
@click.option(
    "--wheels", type=click.Path(path_type=Path, exists=True), help="a folder of wheels to search and install from"
)
@click.option(
    "--index", "--index-url", "index_url", metavar="URL", help="search and install from this index (nightlies)"
)
@click.option("--pre", is_flag=True, help="with --index: pre-releases, too")
@click.option("--table", is_flag=True, help="scripts: ask every version, not only those that a search needs")
@click.option("--json", "as_json", is_flag=True, help="scripts: say it as JSON")
@click.option(
    "-n", "workers", type=click.IntRange(1), default=2, metavar="N", help="scripts: this many versions at a time"
)
@click.option("--with", "beside", multiple=True, metavar="REQ", help="install this too, e.g. triton==3.8.0")
@click.option("--python", "pythons", multiple=True, metavar="V=PATH", help="a Python that has this version already")
@click.option(
    "--source",
    type=click.Path(path_type=Path),
    help="AutoDeploy: the TensorRT-LLM checkout whose commits to search (or TRTLLM_SRC)",
)
@click.option("--micrographs", "folder", metavar="DIR", help="your own micrographs")
def bisect(
    cell: str,
    good: str | None,
    bad: str | None,
    fact: str | None,
    versions: str | None,
    wheels: Path | None,
    index_url: str | None,
    pre: bool,
    table: bool,
    as_json: bool,
    workers: int,
    beside: tuple[str, ...],
    pythons: tuple[str, ...],
    source: Path | None,
    folder: str | None,
) -> int:
    """Between which two versions did a script begin to fail, or a cell move? A folder of scripts gives a table."""
    if cell.endswith(".py") or Path(cell).is_dir():
        asking = Asking(good, bad, versions, wheels, index_url, pre, beside, pythons, workers)
        return _bisect_scripts(cell, asking, table or Path(cell).is_dir(), as_json)
    from conformance.triage import bisect as searching

    if not good or not bad:
        raise UsageError("a cell is searched between --good and --bad: name both")
    wanted = Cell.parse(cell)
    _known_cell(wanted, folder)
    console = Console()
    memory = searching.memory(wanted)

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    package = _package(wanted.backend)
    if not package:
        listed, ask_one = _over_commits(wanted, good, bad, source, folder)
    else:
        listed, ask_one = _over_wheels(
            wanted, package, good, bad, versions, wheels, index_url, beside, pythons, folder, say
        )
    say(
        f"{len(listed)} to search: {', '.join(v[:12] for v in listed)}"
        if len(listed) < 20
        else f"{len(listed)} to search"
    )

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
    from conformance.library import load

    library = load(folder)
    if cell.micrograph not in library:
        raise unknown("micrograph", cell.micrograph, library)


def _package(name: str) -> str:
    """What is installed in each version: the backend's own distribution, which brings the torch that it was released with."""
    from conformance import backends
    from conformance.backends.base import Released

    backend = backends.get(name)
    return backend.package if isinstance(backend, Released) else "torch"


def _over_wheels(
    cell: Cell,
    package: str,
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

    known = _pythons(pythons)
    options = install_options(index_url or "", wheels=str(wheels or ""))
    if versions:
        listed = [v.strip() for v in versions.split(",") if v.strip()]
    elif wheels:
        listed = searching.in_folder(package, wheels)
    else:
        listed = searching.released(package)
    environments = Environments(package, beside, known, options, say)

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
        raise UsageError(
            "AutoDeploy is searched over commits: give --source DIR, a git checkout of TensorRT-LLM (or TRTLLM_SRC)"
        )

    def ask_one(commit: str) -> Any:
        try:
            tree = searching.worktree(root, commit)
        except LookupError as error:
            return searching.Answer(commit, skipped=str(error))
        return searching.ask(sys.executable, commit, cell, {"TRTLLM_SRC": str(tree)}, folder)

    return searching.commits(root, good, bad), ask_one


# ------------------------------------------------------------------------------------------------ scripts


@dataclass(frozen=True)
class Asking:
    """Which versions of torch are asked, and how they are installed."""

    good: str | None
    bad: str | None
    versions: str | None
    wheels: Path | None
    index: str | None
    pre: bool
    beside: tuple[str, ...]
    pythons: tuple[str, ...]
    workers: int

    def listed(self) -> list[str]:
        from conformance.triage import script_bisect

        known = script_bisect.listed("torch", self.versions, self.wheels, self.index, self.pre)
        found = script_bisect.chosen(known, self.good, self.bad)
        if len(found) < 2:
            raise UsageError(f"a search needs at least two versions; these are there: {', '.join(found) or 'none'}")
        return found

    def environments(self, say: Callable[[str], None]) -> Environments:
        from conformance.triage.script_bisect import BESIDE

        options = install_options(self.index or "", wheels=str(self.wheels or ""), pre=self.pre)
        return Environments("torch", self.beside, _pythons(self.pythons), options, say, BESIDE)


def _bisect_scripts(subject: str, asking: Asking, table: bool, as_json: bool) -> int:
    from conformance.triage import script_bisect

    def say(text: str) -> None:
        click.echo(text, err=True)

    scripts, versions = script_bisect.scripts_of(subject), asking.listed()
    if not table and not (asking.good and asking.bad):
        raise UsageError("a script is searched between --good and --bad: name both, or ask every version with --table")
    environments = asking.environments(say)
    rows: dict[str, Any] = {}
    for script in scripts:
        search = script_bisect.ScriptBisect(script, environments, asking.workers, say)
        rows[script.stem] = search.table(versions) if table else search.search(versions)
    if as_json:
        click.echo(json.dumps({name: _row_json(*row) for name, row in rows.items()}, indent=2))
    elif len(scripts) > 1:
        _tell_table(rows, versions)
    else:
        seen, found = rows[scripts[0].stem]
        _tell_script(seen, found, versions)
    return 0 if any(found.first_bad for _, found in rows.values()) else 1


def _row_json(seen: dict[str, Any], found: Any) -> dict[str, Any]:
    return {"first_bad": found.first_bad or None, "last_good": found.last_good or None, "said": found.said} | {
        "versions": {version: asdict(one) for version, one in seen.items()}
    }


def _tell_script(seen: dict[str, Any], found: Any, versions: list[str]) -> None:
    for version in versions:
        if version in seen:
            one = seen[version]
            click.echo(f"{version:16} {one.sign:>5}  {one.skipped or one.text}")
    if found.first_bad:
        also = f"; {found.said}" if found.said else ""
        click.echo(f"first bad: {found.first_bad}, last good: {found.last_good}{also}")
    else:
        click.echo(found.said)


def _tell_table(rows: dict[str, Any], versions: list[str]) -> None:
    table = Table("script", *versions, "first bad")
    for name, (seen, found) in rows.items():
        table.add_row(name, *(seen[version].sign for version in versions), found.first_bad or found.said)
    Console().print(table)


COMMANDS = [bisect]
