"""Workers of a session: each has a server of fresh processes, and does one job after the other beside the session itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

from conformance.fresh import Fresh


class Caller(Protocol):
    """Runs a function of a module in a process of its own, as `Fresh` does."""

    def call(self, function: Callable[..., Any], *args: Any, limit: float = 300.0) -> Any: ...


Work = Callable[[Caller], Any]


@dataclass
class Done:
    """A job that ended: what it gave, or the exception that ended it; seconds: how long it took."""

    kind: str
    about: Any
    value: Any = None
    error: BaseException | None = None
    seconds: float = 0.0


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Workers:
    """`count` jobs run at a time. `prepare` forks the servers off: before anything is compiled, and before the first thread."""

    count: int
    servers: list[Fresh] = field(default_factory=list)
    running: set[Future[Done]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._free: SimpleQueue[Fresh] = SimpleQueue()
        self._threads: ThreadPoolExecutor | None = None

    def prepare(self) -> None:
        for _ in range(self.count):
            server = Fresh()
            server.prepare()
            self.servers.append(server)
            self._free.put(server)
        self._threads = ThreadPoolExecutor(self.count, "worker")

    @property
    def idle(self) -> bool:
        return len(self.running) < self.count

    def start(self, kind: str, about: Any, work: Work) -> None:
        """Begin a job; what it gives comes out of `ended`."""
        assert self._threads is not None, "prepare() comes first"
        self.running.add(self._threads.submit(self._do, kind, about, work))

    def _do(self, kind: str, about: Any, work: Work) -> Done:
        server, done, start = self._free.get(), Done(kind, about), time.monotonic()
        try:
            done.value = work(server)
        except Exception as error:
            done.error = error
        finally:
            self._free.put(server)
            done.seconds = time.monotonic() - start
        return done

    def ended(self, timeout: float) -> Iterator[Done]:
        """The jobs that have ended, or the next that do so within `timeout` seconds."""
        finished, self.running = wait(self.running, timeout, FIRST_COMPLETED)
        yield from (future.result() for future in finished)

    def close(self) -> None:
        """End whatever still runs."""
        for server in self.servers:
            server.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        self.servers.clear()


@dataclass
class Inline(Workers):
    """One job at a time, in this very process: for tests of what is made of the answers."""

    count: int = 1
    answers: list[Done] = field(default_factory=list)

    def prepare(self) -> None:
        pass

    def start(self, kind: str, about: Any, work: Work) -> None:
        try:
            self.answers.append(Done(kind, about, work(self), seconds=0.01))
        except Exception as error:
            self.answers.append(Done(kind, about, error=error))

    @property
    def idle(self) -> bool:
        return not self.answers

    def call(self, function: Callable[..., Any], *args: Any, limit: float = 300.0) -> Any:
        return function(*args)

    def ended(self, timeout: float) -> Iterator[Done]:
        answers, self.answers = self.answers, []
        yield from answers
