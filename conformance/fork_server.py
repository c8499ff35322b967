"""A process that jobs are forked from: it imports the compilers once, compiles nothing, and holds no micrographs.

It is forked off before the library is loaded, and makes itself ready while the controller loads the library, the expectations and the
baseline. The library would cost each job time, too: torch changes `nn.Module` while it traces, and Python then looks at every subclass.

    server = ForkServer()
    server.call(preload, places)      # at once; it is done before the first job
    for event in server.run(jobs, size=2, limit=300): ...
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from conformance.errors import first_line
from conformance.processes import Death, Event, Job, Pool, die_with_parent, ended_how, fork, messages, send

GRACE = 5.0  # seconds that the server has to end what it started


class ForkServer:
    """The controller's side. Functions and arguments of jobs and calls are pickled: a function is one of a module."""

    _pid: int
    _status: int | None  # of its end

    def __init__(self) -> None:
        self._calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._start()

    def call(self, function: Callable[..., Any], *args: Any) -> None:
        """Have the server call a function. It does not wait; what the function raises is raised by the next `run`."""
        self._calls.append((function, args))
        self._order("call", function, args)

    def run(
        self, jobs: Sequence[Job], size: int, limit: float, memory: int | None = None, share: int = 1
    ) -> Iterator[Event]:
        """Yields what jobs say and how each ended, as it happens. Where the server itself is ended, so are the jobs that have begun; the
        others are run by a new one. Closing the iterator ends everything."""
        todo = list(jobs)
        try:
            while todo:
                begun: set[int] = set()
                ended: set[int] = set()
                self._order("run", (size, limit, memory, share), [(job.function, job.args, job.group) for job in todo])
                for number, event in self._events(todo):
                    begun.add(number)
                    if event.ended:
                        ended.add(number)
                    if event.ended or event.said is not None:
                        yield event
                if len(ended) == len(todo):
                    return
                death = Death(False, f"the process that it was forked from {self._how()}")
                for number in sorted(begun - ended):
                    yield Event(todo[number], ended=True, death=death)
                todo = [job for number, job in enumerate(todo) if number not in begun]
                self._restart()
        finally:
            if todo and sys.exc_info()[0] is not None:
                self.close()

    def close(self) -> None:
        """End the server and all that it started."""
        if self._owner != os.getpid() or not self._pid:
            return
        with suppress(OSError):
            os.kill(self._pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while self._status is None and time.monotonic() < deadline:
            self._reap(os.WNOHANG)
            time.sleep(0.01)
        if self._status is None:
            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
            self._reap(0)
        for descriptor in (self._orders, self._answers):
            os.close(descriptor)
        self._pid = 0

    # ------------------------------------------------------------------------------------------- plumbing

    def _start(self) -> None:
        self._owner, self._status = os.getpid(), None
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self._pid = fork()
        if self._pid == 0:
            os.close(self._orders)
            os.close(self._answers)
            _serve(orders, answers)
        os.close(orders)
        os.close(answers)

    def _restart(self) -> None:
        self.close()
        self._start()
        for function, args in self._calls:
            self._order("call", function, args)

    def _order(self, *words: Any) -> None:
        with suppress(BrokenPipeError):  # it was ended; whoever waits for its answers is told
            send(self._orders, words)

    def _events(self, jobs: list[Job]) -> Iterator[tuple[int, Event]]:
        """Until all jobs have ended, or the server has."""
        buffer, left = bytearray(), len(jobs)
        while left:
            data = os.read(self._answers, 1 << 20)
            if not data:
                return
            buffer += data
            for said in messages(buffer):
                if isinstance(said, BaseException):
                    raise said
                number, what, ended, death = said
                left -= ended
                yield number, Event(jobs[number], what, ended, death)

    def _reap(self, options: int) -> None:
        with suppress(ChildProcessError):
            pid, status = os.waitpid(self._pid, options)
            if pid:
                self._status = status

    def _how(self) -> str:
        self._reap(0)
        return ended_how(os.waitstatus_to_exitcode(self._status)) if self._status is not None else "was ended"


# ----------------------------------------------------------------------------------------------- the server


def _serve(orders: int, answers: int) -> NoReturn:
    """One order after the other, until there are no more."""
    code = 1
    try:
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the controller hears it, too, and ends this process
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        buffer = bytearray()
        while data := os.read(orders, 1 << 20):
            buffer += data
            for order in messages(buffer):
                _obey(order, answers)
        code = 0
    except SystemExit:
        code = 0
    except BaseException as error:
        with suppress(BaseException):
            sys.stderr.write(f"{first_line(error)}\n")
    finally:
        os._exit(code)


def _obey(order: tuple[Any, ...], answers: int) -> None:
    try:
        if order[0] == "call":
            _, function, args = order
            function(*args)
            return
        _, (size, limit, memory, share), parts = order
        jobs = [Job(number, *part) for number, part in enumerate(parts)]

        def begins(job: Job) -> None:  # it may end this process before anything else is heard of it
            send(answers, (job.key, None, False, None))

        for event in Pool(size, limit, memory, share, begins).run(jobs):
            send(answers, (event.job.key, event.said, event.ended, event.death))
    except Exception as error:
        send(answers, _told(error))


def _told(error: Exception) -> Exception:
    try:
        pickle.dumps(error)
    except Exception:
        return RuntimeError(first_line(error))
    return error
