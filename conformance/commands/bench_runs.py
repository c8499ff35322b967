"""What whole runs of the suite cost: start-up, scaling with workers, the share of each stage, memory. Each run is a process of its own with
an empty home."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import paths
from conformance.stage import STAGES

Row = tuple[str, float, str]  # what was measured, its value, the goal

# One micrograph, compiled and run by torch alone: only the file that it stands in is imported.
BARE = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("micrographs", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
m = getattr(module, sys.argv[2])
torch.compile(m.build())(*m.example())
"""
NO_PATCH = '"""A plugin that changes nothing."""\n'
OPERATORS = ("add", "atan2", "cumsum", "flip", "maximum", "where")
SLEEP = 0.02
TIMED = frozenset({"seconds", "millis", "time"})


@dataclass
class Timed:
    """A run: until its first verdict, until its end, what it recorded."""

    first: float
    whole: float
    lines: dict[str, dict[str, Any]]


def run(names: list[str], home: Path, workers: int, *words: str) -> Timed:
    """`conformance run` of these micrographs through Inductor on the CPU, nothing reused."""
    record = home / f"run-{time.monotonic_ns()}.jsonl"
    command = [sys.executable, "-m", "conformance.cli", "run", "-b", "inductor", "-t", "cpu", "-n", str(workers)]
    command += ["--fresh", "--no-baseline", "--record", str(record), *words, *(p for n in names for p in ("-m", n))]
    env = _environment(home)
    start, first = time.perf_counter(), 0.0
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home)
    while process.poll() is None:
        if not first and record.exists() and record.read_bytes().count(b"\n") > 1:
            first = time.perf_counter() - start
        time.sleep(SLEEP)
    whole = time.perf_counter() - start
    lines = [json.loads(line) for line in record.read_text().splitlines()[1:]]
    return Timed(first or whole, whole, {line["cell"]: line for line in lines if "cell" in line})


def _environment(home: Path) -> dict[str, str]:
    """An empty home and empty caches of torch: a machine on which nothing ran before."""
    path = os.pathsep.join([paths.import_path(), str(home)])
    return {**os.environ, "PYTHONPATH": path, "CONFORMANCE_HOME": str(home / "home"), "TMPDIR": _folder(home / "tmp")}


def _folder(path: Path) -> str:
    path.mkdir(exist_ok=True)
    return str(path)


def startup(names: list[str]) -> list[Row]:
    """The time to the first verdict ÷ a bare compile of the same micrograph, cold and then warm, with a plugin and without."""
    import inspect

    from conformance.library import load

    name = names[0]
    micrograph = load()[name]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "changes_nothing.py").write_text(NO_PATCH)
        command = [sys.executable, "-c", BARE, inspect.getfile(micrograph), micrograph.__name__]
        start = time.perf_counter()
        subprocess.run(command, env=_environment(home), cwd=home, capture_output=True, check=True)
        bare = time.perf_counter() - start
        for what, words in (("", ()), (" with --plugin", ("--plugin", "changes_nothing"))):
            cold = Path(_folder(home / f"cold{len(rows)}"))
            (cold / "changes_nothing.py").write_text(NO_PATCH)
            rows.append(
                (
                    f"first verdict of {name}{what} ÷ bare compile, cold",
                    run([name], cold, 1, *words).first / bare,
                    "≤ 2",
                )
            )
            rows.append(
                (f"first verdict of {name}{what} ÷ bare compile, warm", run([name], cold, 1, *words).first / bare, "")
            )
    return rows


def scaling(names: list[str]) -> list[Row]:
    """One worker ÷ several, and how many cells say something else: none may."""
    cores = len(os.sched_getaffinity(0))
    numbers = [n for n in (1, 2, 4, 8, 14, 32, 64) if n <= max(cores, 2)]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        run(names, home, numbers[-1])  # so that every one of them finds the same files in memory
        alone = run(names, home, 1)
        for number in numbers[1:]:
            beside = run(names, home, number)
            goal = "≥ 6" if number == 14 else ""
            rows.append(
                (f"-n 1 ÷ -n {number}, {len(names)} micrographs, {cores} cores", alone.whole / beside.whole, goal)
            )
            others = [cell for cell, line in beside.lines.items() if told(alone.lines.get(cell)) != told(line)]
            example = (
                f" ({others[0]}: {differs(alone.lines.get(others[0]), beside.lines[others[0]])})" if others else ""
            )
            what = f"cells that say something else with -n {number}, of {len(alone.lines)}{example}"
            rows.append((what, float(len(others)), "0"))
        rows += _stages(alone.lines)
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        rows.append(("memory of the largest process, MiB", largest, ""))
    return rows


def operators(names: list[str]) -> list[Row]:
    """Many calls in one compile, against one compile a call. Processor time, so that a busy machine is the same to both, and without
    what a sweep of a single call takes: imports, headers, the CPU's vectors."""
    asked = [part for operator in OPERATORS for part in ("-k", operator)]
    asked += [part for dtype in ("float32", "bfloat16", "int64") for part in ("--dtype", dtype)]
    alone = ["-k", OPERATORS[0], "--dtype", "float32", "--form", "plain", "--samples", "1"]
    base, wide, single = (_sweep(words) for words in (alone, asked, [*asked, "--width", "1"]))
    what = f"one compile a call ÷ many calls in one compile, {len(OPERATORS)} operators, processor time"
    return [(what, (single - base) / (wide - base), "≥ 15")]


def _sweep(words: list[str]) -> float:
    """The processor time of a sweep of operators from empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = {**_environment(home), "TORCHINDUCTOR_CACHE_DIR": str(home / "inductor")}
        command = [sys.executable, "-m", "conformance.cli", "ops", "-t", "cpu", "-s", "runtime", "-n", "1"]
        command += [*words, "--record", str(home / "ops.jsonl")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=env, capture_output=True, cwd=home)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def differs(one: dict[str, Any] | None, other: dict[str, Any]) -> str:
    """Where two lines of one cell part, and what each says there."""
    if one is None:
        return "one run has no such cell"
    first, second = told(one), told(other)
    for name in sorted(first.keys() | second.keys()):
        before, after = first.get(name), second.get(name)
        if before != after:
            if isinstance(before, dict) and isinstance(after, dict):
                return f"{name}.{differs(before, after)}"
            return f"{name} {before} → {after}"
    return "nothing"


def told(line: dict[str, Any] | None) -> Any:
    """What a cell says, without times."""
    if line is None:
        return None
    return {name: _without_times(value) for name, value in line.items() if name not in TIMED}


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(one) for name, one in value.items() if name not in TIMED}
    return value


def _stages(lines: dict[str, dict[str, Any]]) -> list[Row]:
    """The share of each stage in the time of all."""
    spent: dict[str, float] = defaultdict(float)
    for cell, line in lines.items():
        spent[cell.split("/", 1)[0]] += line.get("seconds") or 0.0
    total = sum(spent.values()) or 1.0
    return [(f"share of {stage} in the time of all stages", spent[stage.value] / total, "") for stage in STAGES]
