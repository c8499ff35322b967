"""`conformance run`: measure and judge the cells of a plan, with progress, a record and a matrix."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from conformance import paths
from conformance.bytecode import importing
from conformance.cell import Cell
from conformance.errors import UsageError
from conformance.plan import THREADS, Plan, cores, select_cells
from conformance.plugins import load_plugins
from conformance.record import Run, is_unexpected, read
from conformance.record_writer import Writer
from conformance.verdict import Verdict

if TYPE_CHECKING:
    from conformance.session import Session

INTERRUPTED = 130


@click.command("run")
@click.option("-b", "--backend", multiple=True, metavar="B", help="backends (default: all that are installed)")
@click.option("-s", "--stage", multiple=True, metavar="S", help="stages (default: all)")
@click.option("-t", "--target", multiple=True, metavar="T", help="cpu, cuda, sm_90 … (default: each backend's own)")
@click.option(
    "-m",
    "--micrograph",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="micrographs, e.g. 'norm.*'; '*': all (default: the core)",
)
@click.option("-n", "--workers", type=click.IntRange(1), default=None, help="processes at a time (default: one a core)")
@click.option(
    "--record", type=click.Path(path_type=Path), help="write the record here (default: a new file in your state folder)"
)
@click.option("--resume", is_flag=True, help="go on with --record where it ended")
@click.option("--fresh", is_flag=True, help="measure every case, even where nothing changed since it was last measured")
@click.option(
    "--plugin",
    multiple=True,
    metavar="MODULE",
    help="load this pytest plugin in every process, before the first compile",
)
@click.option(
    "--micrographs", "folder", metavar="DIR", help="a folder of your own micrographs (default: those of the suite)"
)
@click.option(
    "--expectations", "expected", metavar="DIR", help="a folder of your own expectations (default: those of the suite)"
)
@click.option("--no-baseline", is_flag=True, help="do not compare facts with recorded runs of the same version")
@click.option(
    "--cell-timeout",
    type=float,
    default=300.0,
    metavar="SECONDS",
    help="a case that takes longer is a `timeout` (default: 300)",
)
@click.option(
    "--memory-limit", type=float, metavar="GIB", help="a case that takes more memory is an `error` (default: no limit)"
)
@click.option(
    "--threads", type=click.IntRange(1), default=THREADS, help=f"threads that compiles see (default: {THREADS})"
)
@click.option("--trtllm-src", metavar="DIR", help="a TensorRT-LLM checkout for AutoDeploy (or TRTLLM_SRC)")
@click.option("--allow-unavailable", is_flag=True, help="exit 0 even if nothing of a backend could be observed here")
@click.option("--junit", type=click.Path(path_type=Path), help="write JUnit XML too")
@click.option("--annotations", is_flag=True, help="print GitHub annotations for what is unexpected")
def run(
    backend: tuple[str, ...],
    stage: tuple[str, ...],
    target: tuple[str, ...],
    globs: tuple[str, ...],
    workers: int | None,
    record: Path | None,
    resume: bool,
    fresh: bool,
    plugin: tuple[str, ...],
    folder: str | None,
    expected: str | None,
    no_baseline: bool,
    cell_timeout: float,
    memory_limit: float | None,
    threads: int,
    trtllm_src: str | None,
    allow_unavailable: bool,
    junit: Path | None,
    annotations: bool,
) -> int:
    """Run the suite; print the matrix."""
    if trtllm_src:
        os.environ["TRTLLM_SRC"] = trtllm_src
    if resume and record is None:
        raise UsageError("--resume needs --record FILE: the record to go on with")
    with importing():
        from conformance.measure import CaseServer  # torch takes seconds: not for --help
        from conformance.plan import select_places

        load_plugins(plugin)
        server = CaseServer()
        server.prepare((backend.name, target.name) for backend, target in select_places(backend, target))
        from conformance.session import Session  # with all that this process alone needs

        plan = Plan(
            select_cells(backend, stage, target, globs, folder),
            folder,
            expected,
            baseline=not no_baseline,
            timeout=cell_timeout,
            memory=int(memory_limit * 2**30) if memory_limit else None,
            threads=threads,
            plugins=plugin,
        )
        session = Session(plan, reuse=not fresh, server=server)
    if not globs and folder is None:
        click.echo("the core of the library (-m '*' takes every micrograph)", err=True)
    path = record or paths.state("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    started = time.monotonic()
    try:
        carry_out(session, path, resume, workers or cores())
    except KeyboardInterrupt:
        click.echo(f"stopped; `--record {_near(path)} --resume` goes on", err=True)
        return INTERRUPTED
    finally:
        server.close()
    done = read(path)
    code = _report(done, plan.cells, time.monotonic() - started, junit, annotations)
    if not allow_unavailable:
        _something_observed(done, plan.cells, stage)
    return code


def carry_out(session: Session, path: Path, resume: bool, workers: int) -> None:
    """Run what the record does not have yet, and write it there, a line a cell, as each case ends."""
    from conformance import environment
    from conformance.commands.progress import RunProgress
    from conformance.session import Ended

    plan = session.plan
    header = environment.header(["conformance", *sys.argv[1:]], session.expected.digest)
    writer = Writer(path, header, resume=resume)
    if writer.repaired:
        click.echo("the last line of the record was half-written and is run again", err=True)
    cases = plan.cases(cell for cell in plan.cells if str(cell) not in writer.done)
    try:
        with RunProgress(plan, cases, Console(stderr=True)) as progress:
            for event in session.run(cases, workers):
                progress.tell(event)
                if isinstance(event, Ended):
                    for result in event.results.values():
                        extra = {"reused": True} if event.reused else {}
                        writer.add(result.to_json() | extra, result.observation.texts)
    finally:
        writer.close()


def _report(done: Run, cells: Iterable[Cell], seconds: float, junit: Path | None, annotations: bool) -> int:
    from conformance.report.document import console
    from conformance.report.style import counted
    from conformance.report.terminal import findings_list, matrix_table, reasons_list

    asked = {str(cell) for cell in cells}
    lines = {name: line for name, line in done.cells.items() if name in asked}
    out = console()
    out.print(matrix_table(lines, rows=len(lines)))
    out.print(reasons_list(lines))
    bad = {name: line for name, line in lines.items() if is_unexpected(line)}
    if bad:
        out.print(findings_list(bad))
    for problem in done.problems:
        click.echo(problem, err=True)
    count = counted(len(lines), "cell")
    out.print(f"{count}, {len(bad)} unexpected, {seconds:.0f} s; record: {_near(done.path)}", style="dim")
    if junit:
        from conformance.report.junit import write_junit

        write_junit(done, junit)
    if annotations:
        from conformance.report.annotations import annotations as annotated

        for line in annotated(done):
            click.echo(line)
    if lost := asked - lines.keys():
        raise UsageError(
            f"{len(lost)} cells have no verdict, {sorted(lost)[0]} for one: run again with --record {_near(done.path)} --resume"
        )
    return 1 if bad else 0


def _near(path: Path) -> str:
    """As one would type it from here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _something_observed(done: Run, cells: Iterable[Cell], stages: tuple[str, ...]) -> None:
    """A backend, or a stage that was asked for by name, of which nothing could be observed is no success: green would say that it was
    tested."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.backend, []).append(cell)
        if stages:
            groups.setdefault(f"the {cell.stage} stage of {cell.backend}", []).append(cell)
    for name, members in groups.items():
        lines = [done.cells[str(cell)] for cell in members]
        if all(line["verdict"] == Verdict.UNAVAILABLE.value for line in lines):
            raise UsageError(
                f"nothing of {name} could be observed: {lines[0]['reason']} (--allow-unavailable: exit 0 all the same)"
            )


COMMANDS = [run]
