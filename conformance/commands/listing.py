"""`conformance list`: micrographs and their contracts, checks, cells."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import click
from rich.table import Table

from conformance import core
from conformance.cell import select
from conformance.command_options import micrograph_globs
from conformance.report.document import console
from conformance.report.style import counted
from conformance.stage import STAGES


@click.command("list")
@micrograph_globs("only these, e.g. 'norm.*'", "*")
@click.option("--micrographs", "folder", default=None, metavar="DIR", help="where micrographs are")
@click.option("--checks", "what", flag_value="checks", help="the checks, with their IDs")
@click.option("--cells", "what", flag_value="cells", help="every cell, one a line")
@click.option("--json", "as_json", is_flag=True, help="for machines")
def listing(globs: tuple[str, ...], folder: str, what: str | None, as_json: bool) -> None:
    """Micrographs with their contracts; --checks, --cells."""
    if what == "checks":
        from conformance.checks import all_checks

        for check in all_checks():
            stage = check.stage.value if check.stage else "any stage"
            click.echo(f"{check.id}  {stage:<14} {check.title}")
        return
    from conformance.library import load

    library = load(folder)
    chosen = {name: library[name] for name in select(library, globs, "micrograph")}
    if what == "cells":
        from conformance import backends

        for backend in backends.names():
            for target in backends.get(backend).targets():
                for name in chosen:
                    for stage in STAGES if backends.get(backend).takes(chosen[name]) else ():
                        click.echo(f"{stage}/{backend}/{target}/{name}")
        return
    if as_json:
        click.echo(
            json.dumps(
                {name: {"summary": m.summary(), "contract": asdict(m.contract)} for name, m in chosen.items()},
                indent=2,
                default=str,
            )
        )
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("micrograph", "what it is for", "contract"):
        table.add_column(column, no_wrap=column == "micrograph", overflow="fold")
    for name, m in chosen.items():
        table.add_row(name, m.summary(), in_words(m.contract))
    families = len({name.split(".")[0] for name in chosen})
    out = console()
    out.print(table)
    count = f"{counted(len(chosen), 'micrograph')} in {families} {'family' if families == 1 else 'families'}"
    if folder is None:
        count += f"; {len(core.of(chosen)):,} of them are the core, what a run takes that names none"
    out.print(count, style="dim")


def in_words(contract: Any) -> str:
    """Only what a contract says beyond the defaults."""
    said = []
    for stage in fields(contract):
        part = getattr(contract, stage.name)
        if not is_dataclass(part) or isinstance(part, type):
            continue
        default = type(part)()
        for field in fields(part):
            value = getattr(part, field.name)
            if value != getattr(default, field.name):
                said.append(f"{field.name}={dict(value) if hasattr(value, 'items') else value}")
    return ", ".join(said)


COMMANDS = [listing]
