"""`conformance bench`: what the suite costs, as ratios measured in one run on one machine."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from conformance import paths
from conformance.cell import select
from conformance.command_options import micrograph_globs
from conformance.commands.bench_runs import Row, operators, scaling, startup
from conformance.report.document import console


def _trace(names: list[str]) -> list[Row]:
    """Alternately, so that a busy machine is busy for both."""
    import torch

    from conformance import backends, oracle
    from conformance.backends.base import Case
    from conformance.backends.inductor.compiled import empty_caches
    from conformance.library import load
    from conformance.stage import STAGES, Stage
    from conformance.target import CPU

    library = load()
    backends.get("inductor").preload(CPU)
    ratios = []
    for name in names:
        case = Case(library[name], CPU)
        spent: dict[str, float] = {}
        for way in ("warm", "bare", "traced", "bare", "traced"):
            start = time.perf_counter()
            if way == "traced":
                compiled = backends.get("inductor").compile(case)
                oracle.run(compiled, case.inputs(0), compiled.module)
                for stage in STAGES[: Stage.RUNTIME.order]:
                    compiled.observe(stage)
                compiled.close()
            else:
                with tempfile.TemporaryDirectory() as folder, empty_caches(Path(folder)):
                    torch.compiler.reset()
                    module = case.module()
                    oracle.run(torch.compile(module), case.inputs(0), module)
            spent[way] = min(spent.get(way, 1e9), time.perf_counter() - start)
        ratios.append(spent["traced"] / spent["bare"])
    return [(f"traced compile ÷ bare torch.compile, median of {len(names)}", statistics.median(ratios), "≤ 1.15")]


BARE = """
import sys, tempfile, time
from pathlib import Path
import torch
from conformance.backends.inductor.compiled import empty_caches
from conformance.library import load
library = load()
start = time.perf_counter()
for name in sys.argv[1:]:
    m = library[name]
    torch.compiler.reset()
    with tempfile.TemporaryDirectory() as folder, empty_caches(Path(folder)):
        module, inputs = m.build(), m.example()
        with torch.set_grad_enabled(any(getattr(i, "grad", False) for i in m.inputs)):
            try:
                torch.compile(module)(*inputs)
            except Exception:
                pass
print(time.perf_counter() - start)
"""


def _suite(names: list[str]) -> list[Row]:
    env = {**os.environ, "PYTHONPATH": paths.import_path()}
    with tempfile.TemporaryDirectory() as home:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", BARE, *names], env=env, check=True, capture_output=True, cwd=home)
        bare = time.perf_counter() - start
        env["CONFORMANCE_HOME"] = home
        command = [sys.executable, "-m", "conformance.cli", "run", "-b", "inductor", "-t", "cpu", "-n", "2"]
        command += [part for name in names for part in ("-m", name)]
        times = []
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run(command, env=env, capture_output=True)
            times.append(time.perf_counter() - start)
    return [
        (
            f"suite with -n 2 ÷ bare compile-and-run, {len(names)} micrographs, processes included",
            times[0] / bare,
            "≤ 0.8",
        ),
        ("a second run with nothing changed ÷ the first", times[1] / times[0], "≤ 0.1"),
    ]


def _tensorrt(names: list[str]) -> list[Row]:
    code = (
        "import time; s = time.perf_counter(); from conformance import backends; b = backends.get('torch_tensorrt'); "
    )
    code += "b.unavailable(__import__('conformance.target', fromlist=['Target']).Target('sm_90')); print(time.perf_counter() - s)"
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths.import_path()},
    )
    return [("import of Torch-TensorRT and its adapter, seconds", float(out.stdout.split()[-1]), "")]


def _headless(names: list[str]) -> list[Row]:
    from conformance.headless import bench as headless

    return headless.measure(names)


def _fuzz(names: list[str]) -> list[Row]:
    from conformance.fuzz.bench import measure

    measured = measure()
    return [
        ("fuzzing ÷ a loop that compiles every example, examples a minute", measured["times"], "≥ 20"),
        ("fuzzing ÷ NNSmith's rate of checked cases", measured["times_nnsmith"], "≥ 10"),
        ("graphs made up, compiled and checked, a minute", measured["graphs_per_minute"], ""),
        ("inputs checked on such graphs, a minute", measured["graph_examples_per_minute"], "≥ 160"),
        ("the same ÷ NNSmith's rate of checked cases", measured["graph_times_nnsmith"], "≥ 10"),
    ]


PARTS: dict[str, Callable[[list[str]], list[Row]]] = {
    "trace": _trace,
    "suite": _suite,
    "startup": startup,
    "scaling": scaling,
    "ops": operators,
    "headless": _headless,
    "tensorrt": _tensorrt,
    "fuzz": _fuzz,
}


@click.command("bench")
@micrograph_globs("what to measure on", "[nmp][oau]*.[a-m]*")
@click.option("--part", type=click.Choice(list(PARTS)), multiple=True, help="only these parts (default: trace, suite)")
@click.option("--json", "as_json", is_flag=True, help="print the numbers as JSON")
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="append a line to this file"
)
@click.option(
    "--against",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="compare with the lines of such a file that a machine of the same kind wrote",
)
@click.option("--limit", default=2.0, show_default=True, help="exit 1 where a ratio is so many times what it was")
def bench(
    globs: tuple[str, ...],
    part: tuple[str, ...],
    as_json: bool,
    record: Path | None,
    against: Path | None,
    limit: float,
) -> int:
    """Traced ÷ bare compile; the suite ÷ bare compiles; start-up; scaling with workers; the cost of each stage. Ratios of one run."""
    from conformance.commands import bench_record
    from conformance.library import load

    names = select(load(), globs, "micrograph")
    rows: list[Row] = []
    progress = Console(stderr=True)
    for name in part or ("trace", "suite"):
        with progress.status(f"{name}: {len(names)} micrographs"):
            rows += PARTS[name](names)
    measured = bench_record.line(rows)
    known = bench_record.before(against, measured) if against else {}
    if record:
        bench_record.append(record, measured)
    if as_json:
        click.echo(json.dumps([{"what": what, "value": value, "goal": goal} for what, value, goal in rows], indent=2))
    else:
        console().print(_table(rows, known if against else None))
    slower = bench_record.slower(rows, known, limit)
    for text in slower:
        click.echo(f"slower: {text}", err=True)
    return 1 if slower else 0


def _table(rows: list[Row], known: Mapping[str, float] | None) -> Table:
    """`known`: what was measured before; None where that was not asked for."""
    table = Table(box=None, header_style="bold")
    for column in ("measured in this run", "value", "goal", *(["before"] if known is not None else [])):
        table.add_column(column)
    for what, value, goal in rows:
        was = [f"{known[what]:.2f}" if what in known else ""] if known is not None else []
        table.add_row(what, f"{value:.2f}", goal, *was)
    return table


COMMANDS = [bench]
