"""The table script x torch version: every script of the corpus under every interpreter, its exit code and last line as JSON.

    python tests/triage/scripts_table.py --python 2.11.0=ENV/bin/python --python 2.15.0=ENV/bin/python --out table.json
    python tests/triage/scripts_table.py … --check                      also compares with truth.toml; exit 1 where they differ
    python tests/triage/scripts_table.py … --fork tests/triage/scripts/mutation_*.py

A script runs in a process of its own with a cache folder of its own. With --fork the process is forked from one that has imported
torch and compiled nothing, which takes a third of the time. What is kept between runs is only Inductor's probe of the machine (which
vector instructions there are), never a graph or a kernel.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
FOLDERS = (HERE / "scripts", HERE / "scripts_right")
PROBE = "import torch._inductor.cpu_vec_isa as isa; isa.valid_vec_isa_list()"
WARM = "torch, torch._dynamo, torch._inductor.compile_fx, torch._inductor.codegen.cpp, torch._inductor.fx_passes.post_grad"


@dataclass
class Result:
    """What one script did under one version: its exit code (negative: the signal; None: it ran out of time)."""

    script: str
    version: str
    exit: int | None
    seconds: float
    said: str


def last_line(log: Path) -> str:
    """The line of a log that says most: the last one that names an error, else the last one."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line[:60] or "Exception" in line[:60]]
    return (errors or lines or [""])[-1][:300]


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCHINDUCTOR_COMPILE_THREADS": "1"}


def fresh(interpreter: str, script: Path, log: Path, cache: Path, timeout: float) -> int | None:
    """The script in a new process of the interpreter, with all that it started ended at the timeout."""
    with log.open("w") as out:
        process = subprocess.Popen(
            [interpreter, str(script)], stdout=out, stderr=subprocess.STDOUT, env=environment(cache), start_new_session=True
        )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def child(script: str, log: str, cache: str) -> NoReturn:
    """Runs the script in this forked process as `python SCRIPT` would, and leaves with its exit code."""
    os.setsid()
    descriptor = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    sys.argv = [script]
    code = 0
    try:
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
    """Reads `script<TAB>log<TAB>cache` lines, runs each in a fork, answers with its exit code (`timeout` where it ran out of time)."""
    exec(f"import {WARM}\n{PROBE}")
    for line in sys.stdin:
        script, log, cache = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            child(script, log, cache)
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
class Interpreter:
    """One torch version: runs scripts one at a time, each in a new process or forked from a server."""

    version: str
    path: str
    probes: Path
    timeout: float
    fork: bool
    server: subprocess.Popen[str] | None = None

    def start(self) -> None:
        subprocess.run([self.path, "-c", PROBE], env=environment(self.probes), check=True, capture_output=True)
        if self.fork:
            command = [self.path, str(Path(__file__).resolve()), "--serve", "--timeout", str(self.timeout)]
            pipe = subprocess.PIPE
            self.server = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment(self.probes)
            )

    def stop(self) -> None:
        if self.server is not None:
            self.server.communicate()

    def asked(self, script: Path, log: Path, cache: Path) -> int | None:
        assert self.server is not None and self.server.stdin is not None and self.server.stdout is not None
        self.server.stdin.write(f"{script}\t{log}\t{cache}\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline().strip()
        return None if answer == "timeout" else int(answer)

    def run(self, script: Path, scratch: Path) -> Result:
        cache, log = scratch / "cache", scratch / "log"
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(self.probes, cache)
        began = time.monotonic()
        if self.fork:
            code = self.asked(script, log, cache)
        else:
            code = fresh(self.path, script, log, cache, self.timeout)
        return Result(script.stem, self.version, code, round(time.monotonic() - began, 1), last_line(log))


def table(interpreters: Iterable[Interpreter], scripts: list[Path]) -> Iterator[Result]:
    """Every script under every interpreter, one at a time."""
    for interpreter in interpreters:
        interpreter.start()
        with tempfile.TemporaryDirectory() as scratch:
            for script in scripts:
                yield interpreter.run(script, Path(scratch))
        interpreter.stop()


def expected() -> dict[str, dict[str, int]]:
    """The exits that truth.toml records, by script and version; every right program exits 0."""
    truth = tomllib.loads((HERE / "scripts" / "truth.toml").read_text())
    return {Path(entry["file"]).stem: entry["exits"] for entry in truth["script"]}


def differs(result: Result, truth: dict[str, dict[str, int]]) -> bool:
    recorded = truth.get(result.script)
    return result.exit != (0 if recorded is None else recorded.get(result.version, result.exit))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", type=Path, help="default: all of scripts/ and scripts_right/")
    parser.add_argument("--python", action="append", default=[], metavar="VERSION=INTERPRETER")
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--fork", action="store_true", help="fork each script from a process that has imported torch")
    parser.add_argument("--check", action="store_true", help="compare with truth.toml")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.timeout)
        return 0
    if not asked.python:
        parser.error("name at least one interpreter: --python 2.15.0=ENV/bin/python")
    scripts = [path.resolve() for path in asked.scripts] or sorted(path for folder in FOLDERS for path in folder.glob("*.py"))
    truth = expected() if asked.check else {}
    results, wrong = [], 0
    with tempfile.TemporaryDirectory() as probes:
        versions = dict(item.split("=", 1) for item in asked.python)
        interpreters = [Interpreter(v, path, Path(probes) / v, asked.timeout, asked.fork) for v, path in versions.items()]
        for result in table(interpreters, scripts):
            results.append(asdict(result))
            off = asked.check and differs(result, truth)
            wrong += off
            note = "  truth.toml says otherwise" if off else ""
            print(f"{result.exit!s:>4} {result.version:8} {result.seconds:6.1f}s {result.script}: {result.said[:120]}{note}", flush=True)
            if asked.out:
                asked.out.write_text(json.dumps(results, indent=1) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
