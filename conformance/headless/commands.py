"""`conformance fidelity`: kernels of a real GPU's machine against those made here without one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from conformance.command_options import micrograph_globs


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        micrograph_globs("only these, e.g. 'norm.*' (default: all)", "*"),
        click.option(
            "--micrographs",
            "folder",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="a folder of your own micrographs",
        ),
        click.option(
            "-t",
            "--target",
            default="",
            help="record: this target (default: the GPU here); compare: another than was recorded",
        ),
        click.option("-n", "--workers", default=1, type=click.IntRange(1), help="processes at a time"),
    ):
        command = option(command)
    return command


def _progress(name: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{name}", end="", file=sys.stderr, flush=True)


@click.group("fidelity")
def fidelity() -> None:
    """Are kernels made without a GPU those of a machine that has it?"""


@fidelity.command("record")
@click.argument("file", type=click.Path(path_type=Path))
@_options
@click.option(
    "--generated",
    default=0,
    type=click.IntRange(0),
    metavar="N",
    help="so many graphs and models that nobody chose, in place of a library",
)
@click.option("--seed", default=0, type=click.IntRange(0), help="of those: other seeds, other graphs")
def record(
    file: Path, globs: tuple[str, ...], folder: Path | None, target: str, workers: int, generated: int, seed: int
) -> int:
    """Write down the kernels of a machine with a GPU (FILE.json, or FILE.json.gz)."""
    from conformance.headless.fidelity import Chosen, record_here

    said = record_here(file, Chosen(globs, folder, generated, seed), target, workers, _progress)
    click.echo(said)
    return 0


@fidelity.command("compare")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@_options
def compare(files: tuple[Path, ...], globs: tuple[str, ...], folder: Path | None, target: str, workers: int) -> int:
    """Make the same kernels here, and show each difference; exit 1 if there is one."""
    from conformance.headless.fidelity import Chosen, Compared, compare_here, other_host, summary

    found: list[Compared] = []
    for file in files:
        found += compare_here(file, Chosen(globs, folder), target, workers, _progress)
    for one in found:
        if not one.equal:
            click.echo(f"{one.micrograph} {one.kernel}\n{one.diff}\n")
    click.echo(summary(found))
    if all(one.equal for one in found):
        return 0
    for note in filter(None, map(other_host, files)):
        click.echo(note)
    return 1


COMMANDS = [fidelity]
