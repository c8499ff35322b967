"""`conformance upstream`: a compiler's own tests, run by stage."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import click
from rich.console import Console

from conformance import paths
from conformance import record as records
from conformance.errors import UsageError, unknown
from conformance.record_writer import Writer
from conformance.stage import STAGES
from conformance.upstream import stage_map, summary
from conformance.upstream.checkout import Checkout, check_map, open_checkout
from conformance.upstream.interpreter import open_interpreter
from conformance.upstream.outcome import COLLECTION, Outcome
from conformance.upstream.results import PREFIX, Results
from conformance.upstream.runner import Options, Runner
from conformance.upstream.stage_map import StageMap
from conformance.verdict import Verdict

FILE = click.Path(path_type=Path)
PROGRESS = 20.0  # seconds between lines of progress


@click.command("upstream")
@click.argument("suite")
@click.option("--src", type=FILE, metavar="DIR", help="the project's checkout, with its tests")
@click.option("--python", "interpreter", metavar="PATH", help="run the tests in this interpreter (default: this one)")
@click.option("-s", "--stage", "stages", multiple=True, metavar="S", help="only tests that belong to this stage")
@click.option(
    "-f", "--file", "globs", multiple=True, metavar="GLOB", help="only these test files, e.g. '*/test_codecache.py'"
)
@click.option("-k", "keyword", default="", metavar="EXPR", help="only tests that pytest's -k selects")
@click.option("-n", "--workers", type=click.IntRange(1), default=1, show_default=True, help="files at once")
@click.option("--record", type=FILE, help="write the record here")
@click.option("--resume", is_flag=True, help="go on with --record where it ended")
@click.option("--against", type=FILE, multiple=True, metavar="RECORD", help="say what is new against older records")
@click.option("--timeout", type=float, default=120.0, show_default=True, metavar="SECONDS", help="for one test")
@click.option("--slow", is_flag=True, help="run tests that the map calls slow")
@click.option("--no-rungs", is_flag=True, help="do not run failing tests again to see from which stage on they fail")
@click.option("--maps", type=FILE, default=stage_map.HOME, metavar="DIR", help="maps of your own")
@click.option("--check-map", "only_check", is_flag=True, help="compare the map with the checkout; run nothing")
@click.option("--list", "only_list", is_flag=True, help="the selected files with stage and purpose; run nothing")
@click.option("--summary", "only_summary", type=FILE, metavar="RECORD", help="summarize a record; run nothing")
def upstream(
    suite: str,
    src: Path | None,
    interpreter: str | None,
    stages: tuple[str, ...],
    globs: tuple[str, ...],
    keyword: str,
    workers: int,
    record: Path | None,
    resume: bool,
    against: tuple[Path, ...],
    timeout: float,
    slow: bool,
    no_rungs: bool,
    maps: Path,
    only_check: bool,
    only_list: bool,
    only_summary: Path | None,
) -> int:
    """Run the tests of SUITE (pytorch, torch_tensorrt, tensorrt_llm) from its checkout against the installed
    package."""
    for stage in stages:
        if stage not in {one.value for one in STAGES}:
            raise unknown("stage", stage, [one.value for one in STAGES])
    mapped = stage_map.load(suite, folder=maps)
    older = [records.read(path) for path in against]
    if only_summary:
        return _show(records.read(only_summary), older, [])
    checkout = open_checkout(src, mapped.suite)
    mapped = stage_map.load(suite, checkout.version, maps)
    if only_check:
        return _check(checkout, mapped)
    files = selected_files(checkout, mapped, stages, globs)
    if only_list:
        return _list(files, mapped)
    if resume and record is None:
        raise UsageError("--resume needs --record FILE: the record to go on with")
    options = Options(frozenset(stages), keyword, timeout, slow=slow, rungs=not no_rungs)
    path = record or paths.state("upstream", "runs") / f"{suite}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    python = open_interpreter(interpreter)
    results = Results(mapped, checkout, python, maps)
    _run(
        Runner(mapped, checkout, python, options, paths.state("upstream") / f"run-{os.getpid()}", results.is_expected),
        results,
        files,
        path,
        resume,
        workers,
    )
    asked_whole = not keyword and not stages
    idle = [
        f"{entry.source}: expects {entry.cell}, which no test that ran here is"
        for entry in results.idle(records.read(path).cells, files)
    ]
    return _show(records.read(path), older, idle if asked_whole else [])


def selected_files(checkout: Checkout, mapped: StageMap, stages: tuple[str, ...], globs: tuple[str, ...]) -> list[str]:
    """The mapped test files that may hold a selected test, in the order in which `globs` name them."""
    from conformance.cell import select

    files = [file for file in checkout.files if mapped.find_file(file) is not None]
    if globs:
        files = list(dict.fromkeys(file for glob in globs for file in select(files, [glob], "test file")))
    return [file for file in files if not stages or {stage.value for stage in mapped.stages_of(file)} & set(stages)]


def _run(runner: Runner, results: Results, files: list[str], path: Path, resume: bool, workers: int) -> None:
    """Run the files into a record, with a line of progress now and then."""
    writer = Writer(path, results.header(), resume=resume)
    done, whole = _done(writer, runner.options)
    progress = Progress(len(files), len(whole))
    lock = threading.Lock()

    def report(outcome: Outcome) -> None:
        with lock:
            lines = results.lines(outcome)
            for line in lines:
                writer.add(line)
            progress.add(outcome, Verdict(lines[0]["verdict"]))

    try:
        runner.run([file for file in files if file not in whole], done, report, workers)
    finally:
        writer.close()
        shutil.rmtree(runner.folder, ignore_errors=True)


def _done(writer: Writer, options: Options) -> tuple[dict[str, set[str]], set[str]]:
    """Tests that the record has already, by file; and the files of which nothing is left."""
    done: dict[str, set[str]] = {}
    whole: set[str] = set()
    for cell, line in writer.done.items():
        test = cell.split("/", 3)[3].removeprefix(PREFIX)
        file = test.partition("::")[0]
        done.setdefault(file, set()).add(test)
        if test.endswith(COLLECTION) and (line.get("observation") or {}).get("selection") == options.selection:
            whole.add(file)
    return done, whole


class Progress:
    """A line now and then on stderr."""

    def __init__(self, files: int, done: int) -> None:
        self.files, self.ended, self.tests, self.unexpected = files, done, 0, 0
        self.console, self.last = Console(stderr=True), time.monotonic()

    def add(self, outcome: Outcome, verdict: Verdict) -> None:
        self.tests += not outcome.test.endswith(COLLECTION)
        self.ended += outcome.test.endswith(COLLECTION)
        self.unexpected += verdict.unexpected
        if time.monotonic() - self.last > PROGRESS:
            self.last = time.monotonic()
            text = f"{self.ended}/{self.files} files, {self.tests} tests, {self.unexpected} unexpected; {outcome.test}"
            self.console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)


def _show(run: records.Run, older: list[records.Run], idle: list[str]) -> int:
    """Print the summary; 1 if anything was unexpected."""
    cells = summary.upstream_cells(run)
    if not cells:
        raise UsageError(f"{run.path} has no upstream tests")
    found = summary.summarize(cells)
    before = {cell: line for one in older for cell, line in summary.upstream_cells(one).items()}
    summary.show(found, summary.against(cells, before) if older else None)
    for line in (*(problem for one in (run, *older) for problem in one.problems), *idle):
        click.echo(line, err=True)
    return 1 if found.unexpected or idle else 0


def _check(checkout: Checkout, mapped: StageMap) -> int:
    found = check_map(checkout, mapped)
    for file in found.unmapped:
        click.echo(f"unmapped  {file}")
    for entry in found.vanished:
        click.echo(f"vanished  {entry.tests}  ({entry.source})")
    for line in found.ambiguous:
        click.echo(f"twice     {line}")
    share = f"{found.files - len(found.unmapped)} of {found.files} test files mapped ({found.share:.1%})"
    click.echo(f"{mapped.suite.name} {checkout.version}: {share}, {len(found.vanished)} vanished")
    return 0 if found.clean else 1


def _list(files: list[str], mapped: StageMap) -> int:
    for file in files:
        entry = mapped.find_file(file)
        assert entry is not None
        narrower = {stage.value for stage in mapped.stages_of(file)} - {entry.stage.value}
        also = f" (and {', '.join(sorted(narrower))})" if narrower else ""
        click.echo(f"{entry.stage.value + also:28} {' '.join(sorted(entry.needs)):10} {file}: {entry.checks}")
    return 0


COMMANDS = [upstream]
