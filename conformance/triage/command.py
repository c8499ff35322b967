"""`conformance triage`."""

from __future__ import annotations

import ast
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from conformance.errors import UsageError
from conformance.plugins import announce, load_plugins


@click.command("triage", context_settings={"ignore_unknown_options": False})
@click.argument("subject", metavar="SCRIPT.py|FILE.py:OBJECT|CELL")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@click.option(
    "-b",
    "--backend",
    default="",
    help="for a file: which compiler; for a script the one that it imports, else inductor",
)
@click.option("-t", "--target", default="cpu", help="for FILE.py:OBJECT: what code is made for")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="write the repro and the text of an issue into this folder"
)
@click.option("--no-reduce", is_flag=True, help="do not make the program smaller")
@click.option("--limit", type=float, default=None, metavar="SECONDS", help="processor time for the reducer")
@click.option(
    "--timeout", type=float, default=120.0, metavar="SECONDS", help="a run of a script that takes longer hangs"
)
@click.option(
    "--within",
    type=float,
    default=150.0,
    metavar="SECONDS",
    help="for a script: after this the culprit and a smaller script are no longer looked for; what is known is said",
)
@click.option(
    "-n", "workers", type=click.IntRange(1), default=2, metavar="N", help="this many runs of a script at a time"
)
@click.option("--evidence", is_flag=True, help="say what the answer rests on, too")
@click.option("--json", "as_json", is_flag=True, help="say it as JSON")
@click.option(
    "--plugin",
    multiple=True,
    metavar="MODULE",
    help="load this pytest plugin in every process, before the first compile",
)
@click.option("--seeded", metavar="NAME", help="with a seeded fault (see `conformance selftest --list`)")
@click.option("--micrographs", "folder", metavar="DIR", help="your own micrographs")
def triage(
    subject: str,
    arguments: tuple[str, ...],
    backend: str,
    target: str,
    out: Path | None,
    no_reduce: bool,
    limit: float | None,
    timeout: float,
    within: float,
    workers: int,
    evidence: bool,
    as_json: bool,
    plugin: tuple[str, ...],
    seeded: str | None,
    folder: str | None,
) -> int:
    """Name the stage at fault and the culprit inside it; make the program smaller; write a repro that was seen to fail.

    SCRIPT.py is any script that exits other than 0 while the bug is there. FILE.py:OBJECT is a module or function
    that is held against eager; the file says `example_inputs`. CELL is one of the suite.
    """
    warnings.filterwarnings(
        "ignore", module=r"torch\."
    )  # what torch says of settings that triage chose is not for the user
    console = Console(stderr=True)

    def say(text: str) -> None:
        console.print(text, style="dim", markup=False, highlight=False)

    if seeded:
        plugin = (*plugin, _seed(seeded))
    if subject.endswith(".py") or _is_plain_object(subject, backend or "inductor", target):
        announce(plugin)
        from conformance.triage.script_triage import checked, triage_script

        file, name = (subject, "") if subject.endswith(".py") else subject.rsplit(":", 1)
        with tempfile.TemporaryDirectory(prefix="conformance-object-") as scratch:
            found = triage_script(
                checked(Path(file), arguments, name, Path(scratch) if name else None),
                backend=backend,
                out=out,
                shrink=not no_reduce,
                limit=limit,
                run_limit=timeout,
                within=within,
                workers=workers,
                say=say,
            )
        return _tell_answer(found, evidence, as_json)
    if arguments:
        raise UsageError("only a script takes arguments")
    load_plugins(plugin)
    return _triage_micrograph(
        subject, backend or "inductor", target, out, no_reduce, 180.0 if limit is None else limit, folder, as_json, say
    )


def _is_plain_object(subject: str, backend: str, target: str) -> bool:
    """`FILE.py:OBJECT` for a compiler whose compiles can be held, and no micrograph: a script can stand for it."""
    file, _, name = subject.rpartition(":")
    if not file.endswith(".py") or not name:
        return False
    if not Path(file).is_file():
        raise UsageError(f"no file {file}")
    try:
        text = Path(file).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return True
    if not _is_held(text, backend, target):
        return False
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name]
    return not any(ast.unparse(base).endswith("Micrograph") for node in classes for base in node.bases)


def _is_held(text: str, backend: str, target: str) -> bool:
    """Can a script stand for an object of this file? What the file puts into the environment is put there before
    torch is imported."""
    from conformance.triage.script_triage import early_environment

    os.environ |= early_environment(text)
    from conformance import backends
    from conformance.target import Target
    from conformance.triage.trail import holds_open

    return holds_open(backends.get(backend), Target.parse(target))


def _tell_answer(found: Any, evidence: bool, as_json: bool) -> int:
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=2))
    else:
        for line in [*found.lines(), *(found.evidence() if evidence else ())]:
            click.echo(line)
    return 1 if found.failed else 0


def _seed(name: str) -> str:
    """The plugin that breaks the compiler; which fault it is goes by the environment."""
    from conformance.seeded import plugin

    os.environ[plugin.VARIABLE] = name
    return plugin.__name__


def _triage_micrograph(
    subject: str,
    backend: str,
    target: str,
    out: Path | None,
    no_reduce: bool,
    limit: float,
    folder: str | None,
    as_json: bool,
    say: Any,
) -> int:
    from conformance.triage import pipeline
    from conformance.triage.micrograph_subject import find

    chosen = find(subject, backend, target, folder)
    found = pipeline.triage(chosen, out=out, shrink=not no_reduce, limit=limit, say=say)
    if found.first is None and not {str(r.verdict) for r in found.results.values()} & {"pass"}:
        raise UsageError(f"nothing to triage: {next(iter(found.results.values())).reason}")
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=2))
        return 0 if found.first is None else 1
    console = Console()
    console.print(pipeline.stages_line(found.results), markup=False)
    if found.first is None:
        console.print(f"nothing fails: {subject} is right at every stage that can be observed here")
        return 0
    _tell(found, console)
    return 1


def _tell(found: Any, console: Console) -> None:
    table = Table.grid(padding=(0, 2))
    first = found.first
    table.add_row("stage", str(first.cell.stage))
    table.add_row("kind", found.kind)
    table.add_row("culprit", str(found.culprit))
    if found.reduced is not None:
        table.add_row("reduced", f"{found.reduced.before} nodes → {found.reduced.nodes} in {found.reduced.tries} tries")
    elif found.unreduced:
        table.add_row("reduced", f"no: {found.unreduced}")
    if found.repro is not None:
        table.add_row("repro", f"{found.repro} ({found.verified})")
        table.add_row("issue", str(found.issue))
    elif found.unwritten:
        table.add_row("repro", f"no: {found.unwritten}")
    table.add_row("seconds", ", ".join(f"{name} {seconds:.0f}" for name, seconds in found.seconds.items()))
    console.print(table)
    if found.reduced is not None:
        console.print(found.reduced.gm.code.strip(), markup=False, highlight=False)


COMMANDS = [triage]
