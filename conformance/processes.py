"""Jobs in forked processes: started in milliseconds, each with a clock, and none can take the others with it.

The process that forks has imported what the jobs need and has compiled nothing, so that every job starts from the same state, as a new
process would. The controller holds the clock: a process that died, was stopped or is silent beyond the limit is ended, and its job
ends as a `Death` that says how. All other jobs run on.

    for event in Pool(2, limit=300).run(jobs): ...
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import pickle
import re
import select
import selectors
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from conformance.errors import first_line, printable
from conformance.proc import is_zombie, kill, resident, state_of

PR_SET_PDEATHSIG = 1
GRACE = 1.0  # seconds that a process has to write down where it hangs, before it is killed
TICK = 1.0  # seconds between two looks at memory
OUTPUT_KEPT = 16_384  # bytes of what a process printed
LAST_READS = 4  # more than a pipe holds; what a process started may go on printing
HEAD = struct.Struct("!Q")
FAULTS = (signal.SIGSEGV, signal.SIGFPE, signal.SIGBUS, signal.SIGILL, signal.SIGABRT)


@dataclass(frozen=True)
class Job:
    """`function(*args, say)` runs in a process of its own; what it says reaches the controller as it is said. Jobs that carry the same
    `group` may share a process, one after the other (a CUDA context takes long to make): a process that is done is given the next one
    that waits. A job that returns True ends its process."""

    key: Any
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    group: Any = None


@dataclass(frozen=True)
class Death:
    """How a process ended that should not have: `timeout` or not, why in one line, the last of what it printed, and the signal that
    ended it, if one did."""

    timeout: bool
    reason: str
    output: str = ""
    signal: int = 0

    @property
    def fault(self) -> bool:
        """Did code do in the process what no process may? SIGKILL comes from outside."""
        return self.signal in FAULTS


@dataclass(frozen=True)
class Event:
    """`said` is what a job said; None at its end, where `death` says how if it did not end by itself."""

    job: Job
    said: Any = None
    ended: bool = False
    death: Death | None = None


@dataclass
class _Process:
    pid: int
    job: Job | None  # what it works on
    orders: int  # file descriptors
    results: int
    output: int
    scratch: Path
    started: float
    given: int = 1  # jobs until now
    buffer: bytearray = field(default_factory=bytearray)
    printed: bytearray = field(default_factory=bytearray)
    killed: str = ""  # why the controller ended it
    timed_out: bool = False
    stopped: bool = False

    @property
    def trace_file(self) -> Path:
        return self.scratch / "stack"


class Pool:
    """Runs jobs in at most `size` processes at a time. `limit` is in seconds a job, `memory` in bytes a process, `share` how many jobs of a
    group a process is given before a new one takes over. `begins` hears of each job before its process does."""

    def __init__(
        self,
        size: int,
        limit: float,
        memory: int | None = None,
        share: int = 1,
        begins: Callable[[Job], None] = lambda job: None,
    ) -> None:
        self.size, self.limit, self.memory, self.share = max(size, 1), limit, memory, max(share, 1)
        self._begins = begins
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, _Process] = {}
        self._waiting: deque[Job] = deque()
        self._known: list[Job] = []  # every job, by the number that a process is told
        self._looked = 0.0

    def run(self, jobs: Iterable[Job]) -> Iterator[Event]:
        """Yields what jobs say and how each ended, as it happens. Closing the iterator ends every process."""
        self._waiting.extend(jobs)
        self._known = list(self._waiting)
        try:
            while self._waiting or self._running:
                while self._waiting and len(self._running) < self.size:
                    self._start()
                yield from self._step()
        finally:
            self.close()

    def add(self, job: Job) -> None:
        """One more job, which is started next."""
        self._waiting.appendleft(job)
        self._known.append(job)

    def close(self) -> None:
        for process in list(self._running.values()):
            self._reap(process)
            shutil.rmtree(process.scratch, ignore_errors=True)
        self._waiting.clear()

    # ------------------------------------------------------------------------------------------- starting

    def _start(self) -> None:
        job = self._waiting.popleft()
        self._begins(job)
        scratch = Path(tempfile.mkdtemp(prefix="conformance-"))
        orders_out, orders = os.pipe()
        results, results_in = os.pipe()
        output, output_in = os.pipe()
        pid = fork()
        if pid == 0:
            _become_child(job, self._known, orders_out, results_in, output_in, scratch)
        for descriptor in (orders_out, results_in, output_in):
            os.close(descriptor)
        process = _Process(pid, job, orders, results, output, scratch, time.monotonic())
        for descriptor in (results, output):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, process)
        self._running[pid] = process

    def _hand_on(self, process: _Process, done: Job) -> None:
        """The process is done with a job: the next of the group for it, or its end."""
        following = None
        if done.group is not None and process.given < self.share:
            following = next((job for job in self._waiting if job.group == done.group), None)
        if following is not None:
            self._waiting.remove(following)
            self._begins(following)
            process.job, process.started = following, time.monotonic()
            process.given += 1
        number = next((index for index, job in enumerate(self._known) if job is following), _NO_MORE)
        with suppress(OSError):  # it may have died just now, which is seen elsewhere
            os.write(process.orders, HEAD.pack(number))

    # ------------------------------------------------------------------------------------------- watching

    def _step(self) -> Iterator[Event]:
        now = time.monotonic()
        deadlines = [process.started + self.limit - now for process in self._running.values()]
        for key, _ in self._selector.select(max(0.0, min([TICK, *deadlines]))):
            process: _Process = key.data
            if process.pid not in self._running:  # it ended while this round's events were handled
                continue
            if key.fd == process.output:
                self._take_output(process)
            else:
                yield from self._take_results(process)
        yield from self._look()

    def _take_output(self, process: _Process) -> None:
        data = _read(process.output)
        if data == b"":
            self._selector.unregister(process.output)
            os.close(process.output)
            process.output = -1
        elif data:
            process.printed += data
            del process.printed[:-OUTPUT_KEPT]

    def _take_results(self, process: _Process) -> Iterator[Event]:
        data = _read(process.results)
        if data == b"":
            yield from self._ended(process)
            return
        process.buffer += data or b""
        for said in messages(process.buffer):
            job = process.job
            assert job is not None, "a process says nothing between two jobs"
            if isinstance(said, str) and said in (_DONE, _RETIRED):
                process.job, process.started = None, time.monotonic()
                if said == _DONE:
                    self._hand_on(process, job)
                yield Event(job, ended=True)
            else:
                yield Event(job, said=said)

    def _look(self) -> Iterator[Event]:
        """Who is beyond the limit of time or memory?"""
        now = time.monotonic()
        tick = now - self._looked >= TICK
        for process in list(self._running.values()):
            late = now - process.started > self.limit
            if process.killed or not (late or tick):
                continue
            if (
                self.memory and resident(process.pid) > self.memory
            ):  # asked first: a process without memory is late, too
                self._end(process, False, f"the process used more than {self.memory / 2**30:.1f} GiB of memory")
            elif late:
                self._end(process, True, f"no end after {self.limit:.0f} s")
        if not tick:
            return
        self._looked = now
        for process in list(self._running.values()):
            if process.pid in self._running and is_zombie(process.pid):  # a grandchild may hold its pipe open
                while process.pid in self._running and _readable(process.results):
                    yield from self._take_results(process)  # what it said before it ended
                if process.pid in self._running:
                    yield from self._ended(process)

    def _end(self, process: _Process, timed_out: bool, reason: str) -> None:
        """Let it write down where it is, then kill it and all that it started."""
        process.killed, process.timed_out = reason, timed_out
        process.stopped = state_of(process.pid) in ("T", "t")
        if timed_out and not process.stopped:
            with suppress(OSError):
                os.kill(process.pid, signal.SIGUSR1)
            deadline = time.monotonic() + GRACE
            while time.monotonic() < deadline and not process.trace_file.stat().st_size:
                time.sleep(0.02)
        kill(process.pid)

    # --------------------------------------------------------------------------------------------- ending

    def _ended(self, process: _Process) -> Iterator[Event]:
        for _ in range(LAST_READS):
            if process.output >= 0 and _readable(process.output):
                self._take_output(process)  # what it printed last, which may say why it ended
        status = self._reap(process)
        death = _death(process, status) if process.job is not None else None
        shutil.rmtree(process.scratch, ignore_errors=True)
        if process.job is not None:
            yield Event(process.job, ended=True, death=death)

    def _reap(self, process: _Process) -> int:
        for descriptor in (process.results, process.output):
            if descriptor >= 0:
                self._selector.unregister(descriptor)
                os.close(descriptor)
        os.close(process.orders)
        process.results = process.output = -1
        self._running.pop(process.pid, None)
        kill(process.pid)  # whatever it started
        _, status = os.waitpid(process.pid, 0)
        return status


def in_fork(function: Callable[[], Any], limit: float = 60.0) -> Any:
    """What a function returns in a forked process: nothing that it does to its process is left behind. None if it fails."""
    answer = None
    for event in Pool(1, limit).run([Job("ask", lambda say: say(function()))]):
        answer = event.said if event.said is not None else answer
    return answer


def _death(process: _Process, status: int) -> Death:
    printed = printable(process.printed.decode("utf-8", "replace"))
    stack = process.trace_file.read_text("utf-8", "replace") if process.trace_file.exists() else ""
    where = f", in {_innermost(stack)}" if stack else ""
    if process.killed:
        how = ": the process was stopped by a signal" if process.stopped else where
        return Death(process.timed_out, process.killed + how, printed)
    if os.WIFSIGNALED(status):
        hint = "" if os.WTERMSIG(status) == signal.SIGKILL else where
        return Death(False, f"the process {ended_how(-os.WTERMSIG(status))}{hint}", printed, signal=os.WTERMSIG(status))
    last = next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
    said = f"; it printed last: {last[:200]}" if last else ""
    return Death(
        False,
        f"the process ended with exit code {os.waitstatus_to_exitcode(status)} and without an answer{said}",
        printed,
    )


def ended_how(code: int) -> str:
    """`was ended by SIGSEGV` or `ended with exit code 3`, of an exit code as subprocess gives it."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was ended by {name}" + ("; out of memory, or killed from outside" if name == "SIGKILL" else "")


def _innermost(stack: str) -> str:
    """The innermost Python frame of the thread that died or, where several are listed, of the main thread, which is listed last."""
    threads = stack.split("Current thread" if "Current thread" in stack else "Thread 0x")
    frames = [line.strip() for line in threads[-1].splitlines() if line.strip().startswith("File ")]
    return re.sub(r'"/.*/', '"', printable(frames[0])) if frames else "native code"


# ------------------------------------------------------------------------------------------------ the child


_DONE = "conformance: this job is done"
_RETIRED = "conformance: this job is done, and the process can do nothing more"


_NO_MORE = 2**64 - 1  # in place of a job's number


def _become_child(job: Job, known: list[Job], orders: int, results: int, output: int, scratch: Path) -> NoReturn:
    """Everything that happens in the forked process; it ends here, whatever happens."""
    code = 1
    try:
        os.setsid()  # so that all that it starts can be ended with it
        die_with_parent()
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        stack = (scratch / "stack").open("w")
        faulthandler.enable(stack)
        faulthandler.register(signal.SIGUSR1, stack, all_threads=True)

        def say(value: Any) -> None:
            send(results, value)

        while True:
            retires = job.function(*job.args, say) is True
            say(_RETIRED if retires else _DONE)
            if retires:
                break
            (number,) = HEAD.unpack(os.read(orders, HEAD.size))
            if number == _NO_MORE:
                break
            job = known[number]
        code = 0
    except (
        BaseException
    ) as error:  # SystemExit and KeyboardInterrupt included: the job's own functions tell theirs before
        with suppress(BaseException):
            sys.stderr.write(f"{first_line(error)}\n")
    finally:
        os._exit(code)


def die_with_parent() -> None:
    """A killed controller leaves no process behind."""
    parent = os.getppid()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def fork() -> int:
    """Fork this process. What is buffered is written first: it would be written twice. What lives long is kept out of the child's garbage
    collector, which would only copy the memory that it looks at."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    gc.freeze()
    pid = os.fork()
    if pid:
        gc.unfreeze()
    return pid


# ---------------------------------------------------------------------------------------------- plumbing


def send(descriptor: int, value: Any) -> None:
    data = pickle.dumps(value)
    view = memoryview(HEAD.pack(len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def messages(buffer: bytearray) -> Iterator[Any]:
    """The whole messages at the front of a buffer, which they leave."""
    while len(buffer) >= HEAD.size:
        (length,) = HEAD.unpack_from(buffer)
        if len(buffer) < HEAD.size + length:
            return
        value = pickle.loads(bytes(buffer[HEAD.size : HEAD.size + length]))
        del buffer[: HEAD.size + length]
        yield value


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _read(descriptor: int) -> bytes | None:
    """What is there to read; b"" at the end; None if there is nothing yet."""
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return None
    except OSError:
        return b""
