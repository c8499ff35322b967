"""`conformance run`: the suite, with progress, a record and a matrix. It is pytest underneath, so that both say the same."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformance import backends, environment, expectations, plugins, micrograph, result_cache
from conformance.cell import Cell, select
from conformance.errors import UsageError, unknown
from conformance.record import Writer, read
from conformance.stage import STAGES, Stage
from conformance.result_cache import Store
from conformance.target import Target
from conformance.verdict import Verdict

ROOT = Path(__file__).resolve().parent.parent.parent


@click.command("run")
@click.option("-b", "--backend", multiple=True, metavar="B", help="backends (default: all that are installed)")
@click.option("-s", "--stage", multiple=True, metavar="S", help="stages (default: all)")
@click.option("-t", "--target", multiple=True, metavar="T", help="cpu, cuda, sm_90 … (default: each backend's own)")
@click.option("-m", "--micrograph", "globs", multiple=True, metavar="GLOB", help="micrographs, e.g. 'norm.*'")
@click.option(
    "-n", "--workers", type=click.IntRange(0), default=None, help="worker processes (default: one a core, at most 4; 0: in this one)"
)
@click.option("--record", type=click.Path(path_type=Path), help="write the record here")
@click.option("--resume", is_flag=True, help="go on with --record where it ended")
@click.option("--fresh", is_flag=True, help="run every cell, even where nothing changed since it last ran")
@click.option("--plugin", multiple=True, metavar="MODULE", help="load this module in every process before the first compile")
@click.option("--micrographs", "folder", default=str(micrograph.HOME), metavar="DIR", help="your own micrographs")
@click.option("--expectations", "expected", default=str(expectations.HOME), metavar="DIR")
@click.option("--no-baseline", is_flag=True, help="do not hold observations against recorded runs")
@click.option("--cell-timeout", type=float, default=300.0, metavar="SECONDS")
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
    folder: str,
    expected: str,
    no_baseline: bool,
    cell_timeout: float,
    trtllm_src: str | None,
    allow_unavailable: bool,
    junit: Path | None,
    annotations: bool,
) -> int:
    """Run the suite; print the matrix."""
    started = time.monotonic()
    if trtllm_src:
        os.environ["TRTLLM_SRC"] = trtllm_src
    if resume and record is None:
        raise UsageError("--resume needs --record FILE: the record to go on with")
    _importable(plugin)
    cells = selection(backend, stage, target, globs, folder)
    path = record or result_cache.home().parent / "runs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    header = environment.header(["conformance", *sys.argv[1:]], expectations.load(expected, environment.versions()).digest)
    writer = Writer(path, header, resume=resume)
    if writer.repaired:
        click.echo("the last line of the record was half-written and is run again", err=True)
    known = Store(folder, expected, no_baseline) if not (plugin or plugins.named()) else None
    reused = 0 if fresh or known is None else known.give([c for c in map(str, cells) if c not in writer.done], writer)
    missing = [cell for cell in cells if str(cell) not in writer.done]
    writer.close()
    console = Console(stderr=True)
    if reused:
        console.print(f"{reused} of {len(cells)} cells are reused: nothing changed since they ran (--fresh runs them again)", style="dim")
    if missing:
        _pytest(missing, path, workers, plugin, folder, expected, no_baseline, cell_timeout, console)
    done = read(path)
    if known is not None and missing:
        known.take(done)
    code = _report(done, cells, started, junit, annotations)
    if not allow_unavailable:
        _something_seen(done, cells)
    return code


def _importable(plugins: tuple[str, ...]) -> None:
    import importlib.util

    if plugins and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in plugins:
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise UsageError(f"no plugin {name!r}: it must be a module that can be imported from here")


def selection(backend: tuple[str, ...], stage: tuple[str, ...], target: tuple[str, ...], globs: tuple[str, ...], folder: str) -> list[Cell]:
    """The cells that the options select; anything unknown is named."""
    for name in stage:
        if name not in {s.value for s in STAGES}:
            raise unknown("stage", name, [s.value for s in STAGES])
    found = [backends.get(name) for name in backend or backends.usual()]
    targets = [Target.parse(name) for name in target]
    library = micrograph.load(folder)
    chosen = select(library, globs or ["*"], "micrograph")
    if folder != str(micrograph.HOME):  # our own are run in eager by the tests
        micrograph.must_run({name: library[name] for name in chosen})
    stages = [Stage(name) for name in stage] or list(STAGES)
    return [Cell(s, b.name, t.name, m) for b in found for t in targets or [Target.parse(b.default_target)] for m in chosen for s in stages]


def _pytest(
    cells: list[Cell],
    path: Path,
    workers: int | None,
    plugins: tuple[str, ...],
    folder: str,
    expected: str,
    no_baseline: bool,
    timeout: float,
    console: Console,
) -> None:
    count = min(4, os.cpu_count() or 1) if workers is None else workers
    count = min(count, len({(c.backend, c.target, c.micrograph) for c in cells}))
    args = [
        str(ROOT / "stages"),
        f"--rootdir={ROOT}",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-o",
        "addopts=",
        "-p",
        "no:terminal",
        "-p",
        "no:cacheprovider",
    ]
    args += [f"--record={path}", "--resume", f"--micrographs={folder}", f"--expectations={expected}", f"--cell-timeout={timeout}"]
    args += [f"--backend={name}" for name in dict.fromkeys(c.backend for c in cells)]
    args += [f"--target={name}" for name in dict.fromkeys(c.target for c in cells)]
    args += [f"--micrograph={name}" for name in dict.fromkeys(c.micrograph for c in cells)]
    args += ["-m", " or ".join(s.marker for s in STAGES if any(c.stage is s for c in cells))]
    args += ["--no-baseline"] if no_baseline else []
    args += ["-n", str(count)] if count else []
    for name in plugins:
        args += ["-p", name]
    with Shown(len(cells), console) as shown:
        code = pytest.main(args, plugins=[shown])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise UsageError(shown.problem or f"pytest ended with {code!s}; run `pytest stages` to see why")


class Shown:
    """Progress: a bar in a terminal, a line now and then elsewhere. A pytest plugin."""

    def __init__(self, total: int, console: Console) -> None:
        self.total, self.console, self.seen, self.unexpected = total, console, 0, 0
        self.problem = ""
        self.bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console)
        self.task = self.bar.add_task("compiling", total=total)
        self.last = time.monotonic()

    def __enter__(self) -> Shown:
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.bar.stop()

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.problem = str(report.longrepr).strip().splitlines()[-1]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when in ("setup", "teardown") and not (report.when == "setup" and not report.passed):
            return
        self.seen += 1
        self.unexpected += bool(report.failed)
        name = report.nodeid.partition("[")[2].rstrip("]")
        text = f"{name}" + (f"  {self.unexpected} unexpected" if self.unexpected else "")
        if self.console.is_terminal:
            self.bar.update(self.task, completed=self.seen, description=text)
        elif time.monotonic() - self.last > 20:
            self.last = time.monotonic()
            self.console.print(f"{self.seen}/{self.total} cells, {self.unexpected} unexpected", style="dim")


def _report(done: Any, cells: list[Cell], started: float, junit: Path | None, annotations: bool) -> int:
    from conformance.report.terminal import findings_list, matrix_table, reasons_list

    asked = {str(cell) for cell in cells}
    lines = {name: line for name, line in done.cells.items() if name in asked}
    console = Console()
    console.print(matrix_table(lines, rows=len(lines)))
    console.print(reasons_list(lines))
    bad = {name: line for name, line in lines.items() if Verdict(line["verdict"]).unexpected}
    if bad:
        console.print(findings_list(bad))
    for problem in done.problems:
        click.echo(problem, err=True)
    console.print(f"{len(lines)} cells, {len(bad)} unexpected, {time.monotonic() - started:.0f} s; record: {_near(done.path)}", style="dim")
    if junit:
        from conformance.report.junit import write_junit

        write_junit(done, junit)
    if annotations:
        from conformance.report.annotations import annotations as annotated

        for line in annotated(done):
            click.echo(line)
    if lost := asked - lines.keys():
        raise UsageError(f"{len(lost)} cells have no verdict, {sorted(lost)[0]} for one: run again with --record {done.path} --resume")
    return 1 if bad else 0


def _near(path: Path) -> str:
    """As one would type it from here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _something_seen(done: Any, cells: list[Cell]) -> None:
    """A backend of which nothing could be observed is no success: a green run would say that it was tested."""
    for name in dict.fromkeys(cell.backend for cell in cells):
        lines = [done.cells[str(cell)] for cell in cells if cell.backend == name]
        if all(line["verdict"] == Verdict.UNAVAILABLE.value for line in lines):
            raise UsageError(f"nothing of {name} could be observed: {lines[0]['reason']} (--allow-unavailable: exit 0 all the same)")


COMMANDS = [run]
