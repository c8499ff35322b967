"""Run the suite under a fault and tell what became of it: verdicts, exit code, seconds, processes left, and whether the record goes on."""

from __future__ import annotations

import contextlib
import ctypes
import io
import itertools
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.processes import Job, Pool
from tests.chaos.faults import FAULTS, GUILTY

TIMEOUTS = {
    "timeout": 5.0,
    "error": 30.0,
}  # seconds a case, by the guilty cell's verdict: a busy machine is slow to fail
PR_SET_CHILD_SUBREAPER = 36
MICROGRAPH = '''
class {name}(Micrograph):
    """{name}."""
    inputs = (Tensor("4 5"),)
    contract = Contract()
    def forward(self, x):
        return x * {factor}.0
'''
NAMES = ("Before", "Guilty", "After", "Last")
STAGES = 7


@dataclass
class Result:
    """What a run under a fault left behind."""

    fault: str
    how: str  # run or pytest
    workers: int
    stages: str  # one or all
    code: int = -1
    seconds: float = 0.0
    verdict: str = ""  # of the guilty cell
    reason: str = ""
    others: list[str] = field(default_factory=list)  # cells of the other micrographs that are not `pass`
    missing: int = 0  # cells without a line
    left: list[str] = field(default_factory=list)  # processes
    printed: str = ""
    resumed: int = -1  # exit code of the same run with --resume

    def problems(self) -> list[str]:
        """What is not as it must be; empty if all is well."""
        _, verdict, words = FAULTS[self.fault]
        checks = {
            f"exit code {self.code}, not 1": self.code == 1,
            f"the guilty cell is {self.verdict}, not {verdict}": self.verdict == verdict,
            f"the reason is {self.reason!r}": words in self.reason,
            f"other cells: {self.others[:2]}": not self.others,
            f"{self.missing} cells have no verdict": not self.missing,
            f"processes left: {self.left[:2]}": not self.left,
            "a traceback was printed": "Traceback" not in self.printed,
            f"took {self.seconds:.0f} s": self.seconds < 90,
            f"--resume ended with {self.resumed}": self.resumed == 1,
        }
        return [problem for problem, fine in checks.items() if not fine]


def micrographs(folder: Path) -> Path:
    home = folder / "mine"
    home.mkdir(exist_ok=True)
    source = "from conformance import Contract, Micrograph, Tensor\n"
    source += "".join(MICROGRAPH.format(name=name, factor=factor) for factor, name in enumerate(NAMES, 2))
    (home / "small.py").write_text(source)
    return home


def arguments(how: str, folder: Path, workers: int, stages: str) -> list[str]:
    """The command line of one run."""
    shared = [
        "--micrographs",
        str(micrographs(folder)),
        "--expectations",
        str(folder),
        "--record",
        str(folder / "r.jsonl"),
    ]
    timeout = TIMEOUTS[FAULTS[os.environ["CONFORMANCE_CHAOS"]][1]]
    shared += ["--cell-timeout", str(timeout), "--memory-limit", "1", "--no-baseline"]
    if how == "run":
        chosen = ["-s", "capture"] if stages == "one" else []
        return ["run", "-b", "chaos", "-t", "cpu", "-n", str(workers), "--fresh", *chosen, *shared]
    chosen = ["-m", "stage_capture"] if stages == "one" else []
    parallel = ["-n", str(workers)] if workers > 1 else []
    from conformance import paths

    options = ["-q", "-p", "no:cacheprovider", "-p", "tests.chaos.faults", "-c", os.devnull, "--rootdir", str(folder)]
    return [str(paths.stages()), *options, "--backend", "chaos", "--target", "cpu", *parallel, *chosen, *shared]


def invoke(how: str, argv: list[str]) -> int:
    """Call the suite in this process, as its command line would."""
    if how == "pytest":
        import pytest

        return int(pytest.main(argv))
    from conformance import cli

    try:
        cli.main(argv)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def in_process(how: str, argv: list[str], log: str, say: Callable[[Any], None]) -> None:
    """The controller of one run: in a process of its own, with its output in a file."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    say(os.getpid())
    say(("code", invoke(how, argv)))


def run(fault: str, how: str, workers: int, stages: str, folder: Path, limit: float = 120.0) -> Result:
    os.environ["CONFORMANCE_CHAOS"] = fault
    result = Result(fault, how, workers, stages)
    log, before = folder / "log", _processes(str(folder))
    argv = arguments(how, folder, workers, stages)
    start = time.monotonic()
    result.code = _controlled(how, argv, log, limit)
    result.seconds = time.monotonic() - start
    result.printed = log.read_text("utf-8", "replace")
    result.left = processes_of(folder, before)
    _read(folder / "r.jsonl", result)
    result.resumed = _controlled(how, [*argv, "--resume"], log, limit)
    return result


def _controlled(how: str, argv: list[str], log: Path, limit: float) -> int:
    code = -1
    for event in Pool(1, limit).run([Job("controller", in_process, (how, argv, str(log)))]):
        if isinstance(event.said, tuple):
            code = event.said[1]
    return code


def _read(path: Path, result: Result) -> None:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()[1:]] if path.exists() else []
    cells = {line["cell"]: line for line in lines}
    guilty = cells.get(f"capture/chaos/cpu/{GUILTY}", {})
    result.verdict, result.reason = guilty.get("verdict", "none"), guilty.get("reason", "")
    result.others = [name for name, line in cells.items() if not name.endswith(GUILTY) and line["verdict"] != "pass"]
    result.missing = len(NAMES) * (1 if result.stages == "one" else STAGES) - len(cells)


def processes_of(folder: Path, before: Collection[str] = ()) -> list[str]:
    """Processes that were started by a run in this folder, or came to this process as orphans, and are still there, once they had a moment
    to end."""
    deadline = time.monotonic() + 5
    while (found := [name for name in _processes(str(folder)) if name not in before]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _processes(word: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                environ = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z" and (word.encode() in environ or int(parent) == os.getpid()):
                    found.append(f"{entry.name} {(entry / 'cmdline').read_bytes()[:80]!r}")
    return found


# ------------------------------------------------------------------------------------------- the controller itself


@contextlib.contextmanager
def _orphans_adopted() -> Iterator[None]:
    """What a killed process leaves behind becomes a child of this process, and is seen as one."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def killed_controller(how: str, workers: int, folder: Path) -> dict[str, Any]:
    """SIGKILL for the controller in the middle of a run: nothing is left behind, and the record goes on."""
    os.environ |= {"CONFORMANCE_CHAOS": "bad_text", "CONFORMANCE_CHAOS_SLOW": "0.4"}
    argv = arguments(how, folder, workers, "all")
    before = _processes(str(folder))
    with _orphans_adopted():
        for event in Pool(1, 120.0).run([Job("controller", in_process, (how, argv, str(folder / "log")))]):
            if isinstance(event.said, int):
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline and _lines(folder / "r.jsonl") < 3:
                    time.sleep(0.05)
                os.kill(event.said, signal.SIGKILL)
        os.environ["CONFORMANCE_CHAOS_SLOW"] = "0"
        kept = _lines(folder / "r.jsonl")
        left = processes_of(folder, before)
    code = _controlled(how, [*argv, "--resume"], folder / "log", 120.0)
    return {"kept": kept, "left": left, "code": code, "lines": _lines(folder / "r.jsonl")}


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _with_small_files(how: str, argv: list[str], log: str, size: int, say: Callable[[Any], None]) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    in_process(how, argv, log, say)


def full_disk(how: str, folder: Path, size: int) -> dict[str, Any]:
    """No file may become larger than `size` bytes, as on a disk that is full: one line, exit code 2, and every line of the record whole."""
    os.environ["CONFORMANCE_CHAOS"] = "bad_text"
    log, code = folder / "log", -1
    argv = arguments(how, folder, 1, "all")
    for event in Pool(1, 120.0).run([Job("controller", _with_small_files, (how, argv, str(log), size))]):
        if isinstance(event.said, tuple):
            code = event.said[1]
    raw = (folder / "r.jsonl").read_bytes() if (folder / "r.jsonl").exists() else b""
    whole = raw.endswith(b"\n") and all(json.loads(line) for line in raw.splitlines())
    return {"code": code, "whole": whole, "printed": log.read_text("utf-8", "replace")}


WAYS = tuple(itertools.product(("run", "pytest"), (1, 2), ("one", "all")))
HEAD = """| fault | command | -n | stages | guilty cell | exit code | seconds | ok |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def main() -> int:
    """The whole table, to standard output as Markdown; a line a row to standard error as it goes."""
    lines, bad = [HEAD], 0

    def add(
        fault: str, how: str, workers: int, stages: str, cell: str, code: Any, seconds: str, wrong: list[str]
    ) -> None:
        nonlocal bad
        bad += bool(wrong)
        ok = "; ".join(wrong) or "yes"
        lines.append(f"| {fault} | {how} | {workers} | {stages} | {cell} | {code} | {seconds} | {ok} |")
        print(f"{fault} {how} -n {workers} {stages}: {ok}", file=sys.stderr, flush=True)

    for fault, (how, workers, stages) in itertools.product(FAULTS, WAYS):
        with _quiet_folder() as folder:
            row = run(fault, how, workers, stages, folder)
        reason = row.reason.replace("|", "\\|")[:90]
        add(fault, how, workers, stages, f"{row.verdict}: {reason}", row.code, f"{row.seconds:.0f}", row.problems())
    for how, workers in itertools.product(("run", "pytest"), (1, 2)):
        with _quiet_folder() as folder:
            told = killed_controller(how, workers, folder)
        wrong = [f"processes left: {told['left'][:2]}"] if told["left"] else []
        wrong += [] if told["lines"] == 29 else [f"{told['lines']} lines after --resume, not 29"]
        add("killed controller", how, workers, "all", f"{told['kept']} lines kept, resumed", told["code"], "", wrong)
    for how, size in itertools.product(("run", "pytest"), (2500, 6000)):
        with _quiet_folder() as folder:
            told = full_disk(how, folder, size)
        wrong = [] if told["whole"] else ["the record ends in the middle of a line"]
        wrong += ["a traceback was printed"] if "Traceback" in told["printed"] else []
        wrong += [] if told["code"] == 2 else [f"exit code {told['code']}, not 2"]
        add(f"disk full after {size} bytes", how, 1, "all", "the record is whole", told["code"], "", wrong)
    print("\n".join(lines))
    return 1 if bad else 0


@contextlib.contextmanager
def _quiet_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="conformance-chaos-") as folder, contextlib.redirect_stderr(io.StringIO()):
        yield Path(folder)
