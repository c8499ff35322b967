"""The table script x torch release x rung: exit code, seconds, last line; and truth.toml's measured part from it.

    python tests/triage/scripts_table.py --python 2.11.0=ENV/bin/python --python 2.15.0=… --results runs.jsonl --write
    python tests/triage/scripts_table.py … --rungs as_written no_fusion --scripts tests/triage/scripts/mutation_*.py
    python tests/triage/scripts_table.py --results runs.jsonl --check    truth.toml against these runs; 1 if they differ

A run that is in the results already is not made again. Each script runs in a process forked from one that has torch
imported and its lazy parts loaded by one small graph, which is forgotten again; it has a cache folder of its own. Only
Inductor's probe of the vector instructions is kept, never a graph or a kernel (TORCHINDUCTOR_VEC_ISA_OK=1 spares it).
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from scripts_rungs import BACKENDS, RUNGS, apply

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
TRUTH = SCRIPTS / "truth.toml"
WARM = """
import torch, torch._dynamo.backends.debugging, torch._inductor.compile_fx, torch._inductor.codegen.cpp
import torch._inductor.scheduler, torch._inductor.fx_passes.post_grad, torch._inductor.fx_passes.joint_graph
torch._inductor.cpu_vec_isa.valid_vec_isa_list()
torch.compile(lambda x: x.sin() + 1, backend="aot_eager_decomp_partition")(torch.ones(4))
torch._dynamo.reset()
"""


ABOUT = """# Scripts that fail

Small programs after public PyTorch reports (`tests/triage/scripts`), each of which exits non-zero while something is
wrong. `truth.toml` beside them says what, at which stage, and which of torch's own switches established that.
Below: how many fail on which release (CPU). A script that was not run as written on a release counts as alive there if
it fails with the backend `eager`, `aot_eager` or `aot_eager_decomp_partition`; one that was not run there does not
count, so that the numbers are lower bounds. Made with

    python tests/triage/scripts_table.py --python 2.11.0=ENV/bin/python … --results runs.jsonl --write --page FILE
"""


@dataclass(frozen=True)
class Run:
    """One script under one torch release at one rung. `exit`: negative for a signal, None where it ran out of time."""

    script: str
    version: str
    rung: str
    exit: int | None
    seconds: float
    said: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.script, self.version, self.rung


def last_line(log: Path) -> str:
    """The line of a log that says most: the last one that names an error, else the last one."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line[:60] or "Exception" in line[:60]]
    return (errors or lines or [""])[-1][:200]


# ------------------------------------------------------------------------ the process that has torch imported


def child(script: str, log: str, cache: str, rung: str) -> NoReturn:
    """Run the script in this forked process as `python SCRIPT` would, held at the rung; leave with its exit code."""
    os.setsid()
    descriptor = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    sys.argv = [script]
    code = 0
    try:
        apply(rung)
        runpy.run_path(script, run_name="__main__")
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        code = int(leaving.code) if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 255)


def serve(timeout: float) -> None:
    """Read `script<TAB>log<TAB>cache<TAB>rung` lines, run each in a fork, answer with its exit code or `timeout`."""
    exec(WARM)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            child(*line.rstrip("\n").split("\t"))
        began = time.monotonic()
        done, status = os.waitpid(pid, os.WNOHANG)
        while not done and time.monotonic() - began < timeout:
            time.sleep(0.05)
            done, status = os.waitpid(pid, os.WNOHANG)
        if not done:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status) if done else "timeout", flush=True)


@dataclass
class Server:
    """One torch release: a process that forks a run at a time. Started with the first run."""

    version: str
    interpreter: str
    timeout: float
    scratch: Path
    process: subprocess.Popen[str] | None = field(default=None, init=False)

    def started(self) -> subprocess.Popen[str]:
        if self.process is None:
            probes = self.scratch / f"probes-{self.version}"
            environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(probes), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
            command = [self.interpreter, str(Path(__file__).resolve()), "--serve", "--timeout", str(self.timeout)]
            pipe, null = subprocess.PIPE, subprocess.DEVNULL
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, text=True, env=environment)
        return self.process

    def run(self, script: Path, rung: str) -> Run:
        process = self.started()
        assert process.stdin is not None and process.stdout is not None
        place = Path(tempfile.mkdtemp(dir=self.scratch))
        log = place / "log"
        began = time.monotonic()
        process.stdin.write(f"{script}\t{log}\t{place / 'cache'}\t{rung}\n")
        process.stdin.flush()
        answer = process.stdout.readline().strip()
        if not answer:
            raise SystemExit(
                f"the process of torch {self.version} ended: does `{self.interpreter} -c 'import torch'` work?"
            )
        code = None if answer == "timeout" else int(answer)
        said = last_line(log)
        shutil.rmtree(place, ignore_errors=True)
        return Run(script.stem, self.version, rung, code, round(time.monotonic() - began, 1), said)

    def stop(self) -> None:
        if self.process is not None:
            self.process.communicate()


def table(
    servers: Iterable[Server], scripts: list[Path], rungs: list[str], known: set[tuple[str, str, str]]
) -> Iterator[Run]:
    """Every run that is not known yet, release by release."""
    for server in servers:
        for rung in rungs:
            for script in scripts:
                if (script.stem, server.version, rung) not in known:
                    yield server.run(script, rung)
        server.stop()


# ------------------------------------------------------------------------------------------------- truth.toml


def read_runs(path: Path) -> list[Run]:
    return [Run(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def measured(runs: Iterable[Run]) -> dict[str, dict[str, dict[str, int]]]:
    """script, switch, release -> exit code; a run that ran out of time is left out: a slow machine is no finding."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for run in runs:
        if run.exit is not None:
            found.setdefault(run.script, {}).setdefault(run.rung, {})[run.version] = run.exit
    return found


def alive(exits: dict[str, dict[str, int]]) -> list[str]:
    """The releases on which the script fails as written, or, where that was not run, at a backend below."""
    whole = exits.get("as_written", {})
    below = {version for rung in BACKENDS for version, code in exits.get(rung, {}).items() if code}
    return sorted({version for version, code in whole.items() if code} | (below - set(whole)))


def merged(truth: dict[str, Any], runs: Iterable[Run]) -> dict[str, Any]:
    """truth.toml with the exits of the runs put over what it had and `alive` made anew; the written part stays."""
    for script, switches in measured(runs).items():
        if script not in truth:
            continue
        entry = truth[script]
        exits = entry.setdefault("exits", {})
        for switch, codes in switches.items():
            exits[switch] = dict(sorted({**exits.get(switch, {}), **codes}.items()))
        entry["alive"] = alive(exits)
    return truth


def value(item: Any) -> str:
    if isinstance(item, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {value(inner)}" for key, inner in item.items()) + " }"
    if isinstance(item, list):
        return "[" + ", ".join(value(inner) for inner in item) + "]"
    return json.dumps(item, ensure_ascii=False)


def toml(truth: dict[str, Any]) -> str:
    """A table a script, `exits` as a table of its own below it."""
    lines = [
        "# What is wrong with each script, and how that was established. The exits, and `alive`, are written by",
        "# tests/triage/scripts_table.py --write; the rest is written by hand after reading them.",
        "",
    ]
    for script, entry in sorted(truth.items()):
        lines.append(f"[{script}]")
        lines += [f"{key} = {value(item)}" for key, item in entry.items() if key != "exits"]
        lines.append(f"[{script}.exits]")
        lines += [f"{json.dumps(switch)} = {value(codes)}" for switch, codes in entry.get("exits", {}).items()]
        lines.append("")
    return "\n".join(lines)


def differences(truth: dict[str, Any], runs: Iterable[Run]) -> list[str]:
    """Where a run ended otherwise than truth.toml says."""
    found = []
    for run in runs:
        said = truth.get(run.script, {}).get("exits", {}).get(run.rung, {}).get(run.version)
        if said is not None and run.exit is not None and said != run.exit:
            found.append(
                f"{run.script} {run.version} {run.rung}: truth.toml says {said}, it exits {run.exit}: {run.said}"
            )
    return found


def counts(truth: dict[str, Any], by: str) -> list[str]:
    """A Markdown table: how many scripts of each class (or stage) are alive, a column a release."""
    releases = sorted({version for entry in truth.values() for codes in entry["exits"].values() for version in codes})
    lines = [f"| {by} | scripts | " + " | ".join(releases) + " |", "| --- |" + " --- |" * (len(releases) + 1)]
    groups = sorted({entry[by] for entry in truth.values()})
    for group in [*groups, "all"]:
        entries = [entry for entry in truth.values() if group in (entry[by], "all")]
        alive_in = [sum(version in entry["alive"] for entry in entries) for version in releases]
        lines.append(f"| {group} | {len(entries)} | " + " | ".join(map(str, alive_in)) + " |")
    return lines


def page(truth: dict[str, Any]) -> str:
    """What docs/scripts.md holds: what the corpus is, and how many of its scripts fail on which release."""
    releases = sorted({version for entry in truth.values() for version in entry["exits"].get("as_written", {})})
    run = {v: sum(v in entry["exits"].get("as_written", {}) for entry in truth.values()) for v in releases}
    whole = ", ".join(f"{number} on {version}" for version, number in run.items())
    return "\n".join([ABOUT, *counts(truth, "class"), "", *counts(truth, "stage"), "", f"Run as written: {whole}.", ""])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", nargs="*", type=Path, help="default: all of tests/triage/scripts")
    parser.add_argument("--python", action="append", default=[], metavar="VERSION=INTERPRETER")
    parser.add_argument("--rungs", nargs="*", default=None, help="switches of scripts_rungs.py; default: all rungs")
    parser.add_argument(
        "--results", type=Path, required="--serve" not in sys.argv, help="JSON Lines, one a run, appended"
    )
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--write", action="store_true", help="write the measured part of truth.toml anew")
    parser.add_argument("--page", type=Path, help="write the table of counts (Markdown) from truth.toml")
    parser.add_argument("--check", action="store_true", help="compare the results with truth.toml")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    if asked.serve:
        serve(asked.timeout)
        return 0
    scripts = [path.resolve() for path in asked.scripts or sorted(SCRIPTS.glob("*.py"))]
    rungs = asked.rungs or list(RUNGS)
    known = {run.key for run in read_runs(asked.results)}
    with tempfile.TemporaryDirectory() as scratch, asked.results.open("a") as results:
        servers = [Server(*item.split("=", 1), asked.timeout, Path(scratch)) for item in asked.python]
        for run in table(servers, scripts, rungs, known):
            print(
                f"{run.exit!s:>7} {run.version:8} {run.seconds:6.1f}s {run.rung:12} {run.script}: {run.said[:100]}",
                flush=True,
            )
            results.write(json.dumps(asdict(run)) + "\n")
            results.flush()
    runs = read_runs(asked.results)
    truth = tomllib.loads(TRUTH.read_text()) if asked.write or asked.check else {}
    wrong = differences(truth, runs) if asked.check else []
    if wrong:
        print("\n".join(wrong))
    if asked.write:
        TRUTH.write_text(toml(merged(truth, runs)))
    if asked.page:
        asked.page.write_text(page(tomllib.loads(TRUTH.read_text())))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
