"""Runs of a subject, each in processes of its own, with every compile held.

A held run is forked from this process, which has imported the compiler and compiled nothing. A plain run is a new
interpreter, as a user would start it. Several run at a time.
"""

from __future__ import annotations

import atexit
import faulthandler
import getpass
import importlib.metadata
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from conformance import paths, plugins
from conformance.errors import first_line, printable
from conformance.processes import Job, Pool, die_with_parent
from conformance.reduce.script import processor_time
from conformance.triage import zygote as zygotes
from conformance.triage.clock import ended_in_time
from conformance.triage.ending import Ending, from_text, of_the_compiler
from conformance.triage.hold import HOLD_VARIABLE, JOURNAL_VARIABLE, Hold, Journal
from conformance.triage.subject import Script, Subject
from conformance.triage.zygote import Zygote


def user_name() -> str:
    """As torch has it in the names of its folders."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no such user on this machine
        return f"uid_{os.getuid()}"


WALL_FACTOR = 20  # a run that still goes on after so many times its limit of processor time is ended
WHERE = signal.SIGUSR1  # asks a program that hangs where it is
GRACE = 1.0  # seconds that it has to say so
OUTPUT_KEPT = 20_000  # characters of what a run printed
# torch starts a pool of processes for Triton's kernels at the first compile of every process; where one is needed, it
# is started then in any case.
NO_POOL = {"TORCH_WARM_POOL": "0"}
# torch asks NVML whether there is a GPU: where it asks CUDA, no process that is forked afterwards can use the GPU.
FORKS = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
# Headers that torch precompiles in the folder for temporary files, and takes longer for than for a kernel. They depend
# on no program.
HEADERS = Path(tempfile.gettempdir(), f"torchinductor_{user_name()}", "precompiled_headers")
INJECTED = (
    Path(__file__).parent / "injected"
)  # its sitecustomize.py holds compiles in interpreters that the program starts

Holder = Callable[[Hold, Journal], Any]  # a backend's context manager that holds every compile inside


@dataclass
class Runs:
    """Runs a subject under holds, and remembers what it saw. `limit` is in seconds of processor time a run, `idle` in
    seconds for which none of its processes wants to run (None: as many), `workers` runs at a time. `until` and
    `spent_at` bound the steps that only make an answer better, by `time.monotonic()` and by `processor_time()`."""

    holder: Holder
    limit: float = 120.0
    idle: float | None = None
    workers: int = 2
    until: float = math.inf
    spent_at: float = math.inf
    counted: int = 0
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="conformance-triage-")))
    _known: dict[tuple[str, Hold], Ending] = field(default_factory=dict)
    _zygote: Zygote | None = None

    def prepare(self) -> None:
        """Fork off the server for interpreters that the subject starts. Call it when the compiler is imported and
        nothing compiled."""
        if self._zygote is None:
            self._zygote = Zygote(self.holder, _exit_code)

    def late(self) -> bool:
        """Is there no time left for what only makes the answer better?"""
        return time.monotonic() > self.until or processor_time() > self.spent_at

    def __call__(self, subject: Subject, *holds: Hold) -> list[Ending]:
        """How the subject ends under each hold, in their order."""
        return self.many([(subject, hold) for hold in holds])

    def many(self, asked: Iterable[tuple[Subject, Hold]], limit: float = math.inf) -> list[Ending]:
        """How each subject ends under its hold. `limit`: seconds of processor time, where that is less than `self.limit`."""
        asked = list(asked)
        keys = [(_key(subject), hold) for subject, hold in asked]
        missing = {key: pair for key, pair in zip(keys, asked, strict=True) if key not in self._known}
        zygote = str(self._zygote.path) if self._zygote else ""
        jobs = [
            Job(key, _held_run, (subject, hold, self.holder, zygote, min(limit, self.limit), self.idle))
            for key, (subject, hold) in missing.items()
        ]
        for key, ending in self._run(jobs):
            self._known[key] = ending
        return [self._known[key] for key in keys]

    def again(self, subject: Subject, hold: Hold) -> Ending:
        """Once more, whatever is known."""
        self._known.pop((_key(subject), hold), None)
        return self(subject, hold)[0]

    def plain(self, *scripts: tuple[Path, Mapping[str, str]], limit: float = 0.0) -> list[Ending]:
        """How scripts end in new interpreters, each with empty caches and with these additions to the environment.
        `limit`: they have so many seconds, if that is more than all runs have."""
        limit = max(limit, self.limit)
        jobs = [Job(number, _plain_run, (path, dict(env), limit)) for number, (path, env) in enumerate(scripts)]
        found = dict(self._run(jobs))
        return [found[number] for number in range(len(scripts))]

    def _run(self, jobs: list[Job]) -> Iterable[tuple[Any, Ending]]:
        self.counted += len(jobs)
        pool = Pool(self.workers, WALL_FACTOR * self.limit)
        for event in pool.run(jobs):
            if isinstance(event.said, Ending):
                yield event.job.key, event.said
            elif event.death is not None:
                how = Ending(None if event.death.timeout else -9, output=event.death.output, seconds=self.limit)
                yield event.job.key, how if event.death.timeout else replace(how, error=event.death.reason)

    def close(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _key(subject: Subject) -> str:
    return subject.text if isinstance(subject, Script) else str(id(subject))


# --------------------------------------------------------------------------------- in the process of one run


def _held_run(
    subject: Subject,
    hold: Hold,
    holder: Holder,
    zygote: str,
    limit: float,
    idle: float | None,
    say: Callable[[Any], None],
) -> None:
    """Fork once more: the child becomes the program and may end as it likes; this process says how it ended."""
    start = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="run-"))
    journal, log, stack = Journal(scratch / "journal"), scratch / "output", scratch / "stack"
    pid = os.fork()
    if pid == 0:
        _become(subject, hold, holder, journal, log, stack, zygote)
    status: list[int] = []

    def has_ended() -> bool:
        done, code = os.waitpid(pid, os.WNOHANG)
        status.extend([code] if done else [])
        return bool(status)

    others = lambda: [event["pid"] for event in journal.events()]
    in_time = ended_in_time(has_ended, pid, limit, others, idle)
    if not in_time:
        _ask_where_it_is(pid, stack)
    code = os.waitstatus_to_exitcode(status[0]) if in_time else None
    ending = _ending(code, journal, log, time.monotonic() - start)
    file = getattr(subject, "path", None)
    say(replace(ending, line=_line_of_stack(stack, file)) if ending.kind in ("hang", "signal") else ending)


def _ask_where_it_is(pid: int, stack: Path) -> None:
    """A program that hangs writes its stack down; it is killed afterwards."""
    with suppress(OSError):
        os.kill(pid, WHERE)
        until = time.monotonic() + GRACE
        while time.monotonic() < until and not stack.stat().st_size:
            time.sleep(0.02)


def _line_of_stack(stack: Path, file: Path | None) -> int:
    """The innermost line of the program in a stack that `faulthandler` wrote; 0 where there is none."""
    lines = re.findall(r'File "([^"]+)", line (\d+)', stack.read_text("utf-8", "replace")) if stack.exists() else []
    return next((int(number) for name, number in lines if name == str(file)), 0)


def _ending(code: int | None, journal: Journal, log: Path, seconds: float) -> Ending:
    output = printable(log.read_text("utf-8", "replace")[-OUTPUT_KEPT:]) if log.exists() else ""
    events = tuple(journal.events())
    ended = next((event for event in reversed(events) if event["event"] == "ended"), None)
    if ended is not None and code == 1 and ended["error"]:
        return Ending(code, ended["error"], ended["line"], ended["inside"], output, seconds, events)
    error, inside = from_text(code, output) if ended is None else ("", False)
    return Ending(code, error, 0, inside, output, seconds, events)


def _become(
    subject: Subject, hold: Hold, holder: Holder, journal: Journal, log: Path, stack: Path, zygote: str
) -> NoReturn:
    """Be the program: its output goes to the log, its end is that of this process. Where a signal ends it, its stack is
    written down."""
    code = 1
    try:
        die_with_parent()
        descriptor = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout = open(1, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        where = stack.open("w")
        faulthandler.enable(where, all_threads=False)
        faulthandler.register(WHERE, where, all_threads=False)
        os.environ |= _environment(hold, journal, zygote)
        with holder(hold, journal):
            code = _exit_code(subject.execute, journal, getattr(subject, "path", None))
    except BaseException as error:  # of ours: the program's own end is told by `_exit_code`
        journal.write("ended", error=f"triage: {first_line(error)}", line=0, inside=False)
        traceback.print_exc()
        code = 70
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)


def _exit_code(execute: Callable[[], None], journal: Journal, file: Path | None = None) -> int:
    """Run the program to its end, threads and exit handlers included; what Python would exit with."""
    code, error = 0, ""
    place, inside = 0, False
    _forget_inherited_exit_handlers()
    try:
        execute()
    except SystemExit as leaving:
        if leaving.code is not None and not isinstance(leaving.code, int):
            print(leaving.code, file=sys.stderr)
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException as raised:
        traceback.print_exc()
        code, error = 1, first_line(raised)
        place, inside = _place(raised, file)
    journal.write("ended" if file else "ended_child", error=error, line=place, inside=inside)
    with suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    return code & 255


def _forget_inherited_exit_handlers() -> None:
    """In a forked process: the handlers of the process that it was forked from are not this program's. They would
    delete folders for temporary files that are still in use there."""
    atexit._clear()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]


def _place(error: BaseException, file: Path | None) -> tuple[int, bool]:
    """The line of the program through which the exception passed, and whether it was raised further in."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [number for number, frame in enumerate(frames) if frame.filename == str(file)]
    if not own:
        return 0, True
    traced = re.findall(r'File "([^"]+)", line (\d+)', str(error).partition("from user code:")[2])
    lines = [int(number) for name, number in traced if name == str(file)]  # where Dynamo was in the program
    inside = any(of_the_compiler(frame.filename) for frame in frames[own[-1] + 1 :])
    return (lines[-1] if lines else frames[own[-1]].lineno or 0), inside


def _environment(hold: Hold, journal: Journal, zygote: str) -> dict[str, str]:
    """For interpreters that the program starts: they are held, too."""
    path = os.pathsep.join([str(INJECTED), paths.import_path()])
    found = {HOLD_VARIABLE: hold.to_json(), JOURNAL_VARIABLE: str(journal.path), "PYTHONPATH": path}
    return found | ({zygotes.VARIABLE: zygote} if zygote else {})


def _plain_run(script: Path, env: dict[str, str], limit: float, say: Callable[[Any], None]) -> None:
    """A new interpreter."""
    scratch = Path(tempfile.mkdtemp(prefix="run-"))
    say(plain_ending(script, (), env, scratch, limit))


def plain_ending(
    script: Path,
    arguments: tuple[str, ...],
    env: dict[str, str],
    scratch: Path,
    limit: float,
    python: str = sys.executable,
) -> Ending:
    """How a script ends in a new interpreter, as a user would start it. Only what the machine can do was found out
    before. Plugins of this run are loaded there, too."""
    start = time.monotonic()
    cache, log = scratch / "torchinductor", scratch / "output"
    if python == sys.executable:
        shutil.copytree(probe_folder(), cache, dirs_exist_ok=True)
    fixed = {"TORCHINDUCTOR_CACHE_DIR": str(cache), "PYTHONWARNINGS": "ignore"}
    surroundings = {**NO_POOL, **os.environ, **fixed, **env}
    _share_headers(surroundings)
    for name in (HOLD_VARIABLE, JOURNAL_VARIABLE):
        surroundings.pop(name, None)
    command = [python, str(script), *arguments]
    if plugins.named():
        command[1:1] = ["-m", "conformance.triage.plugged"]
        surroundings["PYTHONPATH"] = os.pathsep.join(
            filter(None, [surroundings.get("PYTHONPATH"), paths.import_path()])
        )
    with log.open("w") as out:
        program = subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=surroundings, start_new_session=True
        )
        try:
            in_time = ended_in_time(lambda: program.poll() is not None, program.pid, limit)
        finally:
            with suppress(OSError):
                os.killpg(program.pid, signal.SIGKILL)  # whatever it started
        code = program.wait() if in_time else None
    return _ending(code, Journal(scratch / "journal"), log, time.monotonic() - start)


def _share_headers(env: Mapping[str, str]) -> None:
    """An interpreter with a folder of its own for temporary files finds the precompiled headers there."""
    folder = Path(env.get("TMPDIR", HEADERS.parents[1])) / HEADERS.parent.name
    with suppress(OSError):  # it costs time only
        HEADERS.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        (folder / HEADERS.name).symlink_to(HEADERS)


def probe_folder() -> Path:
    """What Inductor finds out about the machine (its vector instructions), kept for new interpreters; no graph and no
    kernel."""
    return paths.cache_folder("probe", f"torch-{importlib.metadata.version('torch')}")
