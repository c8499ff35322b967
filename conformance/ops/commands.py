"""`conformance ops`: every operator through a compiler, and the table of how each fares."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance import paths
from conformance.errors import UsageError, few, unknown
from conformance.ops.causes import causes
from conformance.record import Run, is_unexpected, read

if TYPE_CHECKING:
    from conformance.expectations import Expectations
    from conformance.ops.sweep import Sweep

STAGES = ("decomposition", "codegen", "runtime")
INTERRUPTED = 130


@click.command("ops")
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@click.option("-b", "--backend", default="inductor", metavar="B", help="the compiler (default: inductor)")
@click.option("-t", "--target", metavar="T", help="cpu, sm_90 … (default: the compiler's own)")
@click.option(
    "-k", "--op", "globs", multiple=True, metavar="GLOB", help="operators, e.g. 'nn.functional.*' (default: all)"
)
@click.option("--shard", metavar="K/N", help="every Nth operator, from the Kth on: 1/3, 2/3 and 3/3 are all of them")
@click.option("--dtype", multiple=True, metavar="D", help="float32, int8, … (default: all)")
@click.option(
    "--form", multiple=True, metavar="F", help="transposed, special, in_place, errors, …; `all` (default: layouts)"
)
@click.option("--layouts", is_flag=True, help="the forms plain, transposed, expanded and sliced, which are the default")
@click.option("--samples", type=click.IntRange(1, 24), default=3, help="samples of an operator in a dtype (default: 3)")
@click.option("--width", type=click.IntRange(1), help="calls in one compile (default: the stage's own; 1: each alone)")
@click.option(
    "-s", "--stage", multiple=True, type=click.Choice(STAGES), help="how far (default: decomposition, then runtime)"
)
@click.option(
    "--no-confirm", is_flag=True, help="do not compile a wrong call to the end: findings may be of the graph alone"
)
@click.option("-n", "--workers", type=click.IntRange(1), default=None, help="processes at a time (default: one a core)")
@click.option("--record", type=click.Path(path_type=Path), help="write the record here (default: your state folder)")
@click.option("--resume", is_flag=True, help="go on with --record where it ended")
@click.option("--expectations", metavar="DIR", help="a folder of your own expectations (default: those of the suite)")
@click.option("--report", type=click.Path(path_type=Path), help="write the table: .html, .md or .json")
@click.option(
    "--repros", type=click.Path(path_type=Path), metavar="DIR", help="of one record: write a script for each cause"
)
@click.option("--changed", is_flag=True, help="in the report, only what differs between two versions")
@click.option("--list", "listed", is_flag=True, help="list the operators and their dtypes; run nothing")
def ops(
    records: tuple[Path, ...],
    backend: str,
    target: str | None,
    globs: tuple[str, ...],
    shard: str | None,
    dtype: tuple[str, ...],
    form: tuple[str, ...],
    layouts: bool,
    samples: int,
    width: int | None,
    stage: tuple[str, ...],
    no_confirm: bool,
    workers: int | None,
    record: Path | None,
    resume: bool,
    expectations: str | None,
    report: Path | None,
    repros: Path | None,
    changed: bool,
    listed: bool,
) -> int:
    """Every operator: what is compiled, what falls back, what is wrong. With RECORDS nothing is run: what is
    wrong in one is told, or the report of all is written."""
    if records:
        runs = [read(path) for path in records]
        if report is not None:
            _write(runs, report, changed)
            return 0
        if len(runs) > 1:
            raise UsageError("several records are read to write a report: give --report ops.html, ops.md or ops.json")
        return _summary(runs[0]) if repros is None else _repros(runs[0], repros)
    if repros is not None:
        raise UsageError("--repros needs a record: conformance ops ops.jsonl --repros DIR")
    if resume and record is None:
        raise UsageError("--resume needs --record FILE: the record to go on with")
    if report is not None and report.suffix not in (".html", ".md", ".json"):
        raise UsageError(f"cannot tell what {report.name} is to be: name it .html, .md or .json")
    sweep = sweep_of(
        backend, target, globs, dtype, (*form, *(["layouts"] if layouts else [])), samples, stage, no_confirm, shard
    )
    for rung in sweep.rungs:
        rung.width = width or rung.width
    if listed:
        for operator in sweep.operators:
            click.echo(f"{operator.name}: {' '.join(name for name in operator.dtypes() if name in sweep.dtypes)}")
        return 0
    path = record or paths.state("runs") / f"ops-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    try:
        done = carry_out(sweep, path, resume, workers, expectations)
    except KeyboardInterrupt:
        click.echo(f"stopped; `--record {path} --resume` goes on", err=True)
        return INTERRUPTED
    if report is not None:
        _write([done], report, changed)
    return _summary(done)


def sweep_of(
    backend: str,
    target: str | None = None,
    globs: tuple[str, ...] = (),
    dtype: tuple[str, ...] = (),
    form: tuple[str, ...] = (),
    samples: int = 3,
    stage: tuple[str, ...] = (),
    no_confirm: bool = False,
    shard: str | None = None,
) -> Sweep:
    """The sweep that the options ask for."""
    # No sweep runs on a real GPU. The operator database would start CUDA here, and no forked process could start it again.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from conformance.cell import select
    from conformance.ops.form import form_names
    from conformance.ops.ladders import LADDERS
    from conformance.ops.operator import dtype_names, operators
    from conformance.ops.sweep import Sweep

    if backend not in LADDERS:
        raise unknown("backend with a sweep of operators", backend, LADDERS)
    wanted, names = form_names(form or ("layouts",)), dtype_names(dtype)
    ladder = LADDERS[backend](target)
    known = operators()
    chosen = in_shard(select(known, list(globs) or ["*"], "operator"), shard)
    rungs = tuple(rung for rung in ladder.rungs if not stage or rung.stage.value in stage)
    if not rungs:
        has = ", ".join(rung.stage.value for rung in ladder.rungs)
        raise UsageError(f"{backend} has no such stage in a sweep of operators: it has {has}")
    return Sweep(
        backend,
        ladder.target,
        tuple(known[name] for name in chosen),
        tuple(names),
        wanted,
        samples,
        rungs,
        None if no_confirm else ladder.check,
        ladder.eager,
    )


def in_shard(names: Sequence[str], shard: str | None) -> list[str]:
    """Every Nth name from the Kth on, for `K/N`."""
    if shard is None:
        return list(names)
    which, _, parts = shard.partition("/")
    if not (which.isdecimal() and parts.isdecimal() and 1 <= int(which) <= int(parts)):
        raise UsageError(f"--shard takes K/N with 1 <= K <= N, such as 1/3, and not {shard!r}")
    return list(names)[int(which) - 1 :: int(parts)]


def prepare(sweep: Sweep, expected_in: str | None = None) -> Expectations:
    """Make this process ready to fork those of the sweep; return what is expected of its cells."""
    import torch

    from conformance import backends, environment, expectations
    from conformance.target import Target

    torch.set_num_threads(1)
    backends.get(sweep.backend).preload(Target.parse(sweep.target))
    return expectations.load(Path(expected_in) if expected_in else paths.expectations() / "ops", environment.versions())


def carry_out(sweep: Sweep, path: Path, resume: bool, workers: int | None, expected_in: str | None = None) -> Run:
    """Run what the record does not have yet; return the record."""
    from conformance import environment
    from conformance.plan import cores
    from conformance.record_writer import Writer

    expected = prepare(sweep, expected_in)
    writer = Writer(path, environment.header(["conformance", *sys.argv[1:]], expected.digest), resume=resume)
    total, last = len(sweep.cells()), time.monotonic()
    try:
        for results in sweep.run(workers or cores(), list(writer.done)):
            for line in results.lines(expected):
                writer.add(line)
            if time.monotonic() - last > 20:
                last = time.monotonic()
                bad = sum(map(is_unexpected, writer.done.values()))
                click.echo(f"{len(writer.done)}/{total} cells, {bad} unexpected", err=True)
    finally:
        writer.close()
    return read(path)


def _write(runs: list[Run], path: Path, changed: bool) -> None:
    from conformance.ops.coverage import write

    write(runs, path, changed)
    click.echo(f"wrote {path}: {path.stat().st_size:,} bytes")


def _summary(done: Run, most: int = 25) -> int:
    """Print what is wrong, a cause at a time, and how many cells have which verdict."""
    found = causes(done.cells.values())
    for cause in found[:most]:
        click.echo(str(cause))
    if len(found) > most:
        click.echo(
            f"and {len(found) - most} more causes: `conformance ops {done.path} --report ops.html` shows them all"
        )
    counts = Counter(line["verdict"] for line in done.cells.values())
    click.echo(", ".join(f"{count} {word}" for word, count in counts.most_common()) + f"; record: {done.path}")
    return 1 if any(map(is_unexpected, done.cells.values())) else 0


def _repros(done: Run, folder: Path) -> int:
    """Write a script for each cause that this torch shows, and say which there is none of."""
    import torch

    from conformance.ops.repro import repros

    recorded = str(done.header.get("env", {}).get("torch", ""))
    if recorded.split("+")[0] != torch.__version__.split("+")[0]:
        raise UsageError(
            f"{done.path} is of torch {recorded}, and torch {torch.__version__} is installed: run it there"
        )
    for made in repros(causes(done.cells.values()), folder):
        said = f"wrote {made.path}" if made.path else f"no script: {made.why}"
        click.echo(f"{made.cause.kind} ({made.cause.stage}): {few(made.cause.operators, 3)}: {said}")
    return 0


COMMANDS = [ops]
