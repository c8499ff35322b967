"""Fresh processes: what has compiled nothing, for a process that compiles.

A server is forked off while nothing has been compiled yet; each call runs a function in a new process forked from that server. This
takes milliseconds, where a new interpreter takes many seconds to import a compiler.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from conformance.errors import first_line
from conformance.processes import Death, Job, Pool, die_with_parent, fork, messages, send


class Fresh:
    """Processes that have compiled nothing, for a process that compiles.

    `prepare` forks off a server while nothing has been compiled yet; each `call` runs a function in a new process forked from that
    server, and returns what the function returned."""

    def __init__(self) -> None:
        self._owner = 0
        self._pid = 0
        self._requests = self._answers = -1

    def prepare(self) -> None:
        """Fork the server off, once a process. Call it before the first compile."""
        if self._owner == os.getpid():
            return
        requests, requests_in = os.pipe()
        answers, answers_in = os.pipe()
        pid = fork()
        if pid == 0:
            os.close(requests_in)
            os.close(answers)
            die_with_parent()
            _serve(requests, answers_in)
        os.close(requests)
        os.close(answers_in)
        self._owner, self._pid, self._requests, self._answers = os.getpid(), pid, requests_in, answers

    def call(self, function: Callable[..., Any], *args: Any, limit: float = 300.0) -> Any:
        """What the function returned in a fresh process. Raises what it raised; `Died` if the process died or took too long.
        Function and arguments are pickled: the function is one of a module."""
        self.prepare()
        send(self._requests, pickle.dumps((function, args, limit)))
        buffer = bytearray()
        while not (answers := list(messages(buffer))):
            data = os.read(self._answers, 1 << 20)
            if not data:
                self._owner = 0
                raise Died(Death(False, "the server of fresh processes died"))
            buffer += data
        answer = answers[0]
        if isinstance(answer, Death):
            raise Died(answer)
        if isinstance(answer, BaseException):
            raise answer
        return answer[0]

    def close(self) -> None:
        if self._owner == os.getpid():
            _kill_one(self._pid)
            os.close(self._requests)
            os.close(self._answers)
        self._owner = 0


class Died(Exception):
    """A fresh process died or took too long."""

    def __init__(self, death: Death) -> None:
        super().__init__(death.reason)
        self.death = death


FRESH = Fresh()


def _serve(requests: int, answers: int) -> NoReturn:
    """The server: one request after the other, each in a process forked from here."""
    try:
        buffer = bytearray()
        while data := os.read(requests, 1 << 20):
            buffer += data
            for request in messages(buffer):
                send(answers, _answer(request))
    finally:
        os._exit(0)


def _answer(request: bytes) -> Any:
    try:
        function, args, limit = pickle.loads(request)
    except Exception as error:
        return RuntimeError(f"the request does not load in a fresh process: {first_line(error)}")
    answer: Any = None
    for event in Pool(1, limit).run([Job("fresh", _tell, (function, args))]):
        answer = event.death or (event.said if event.said is not None else answer)
    return answer


def _tell(function: Callable[..., Any], args: tuple[Any, ...], say: Callable[[Any], None]) -> None:
    try:
        answer: Any = (function(*args),)
    except BaseException as error:
        answer = error
    try:
        say(answer)
    except Exception:  # an exception that cannot be pickled
        say(RuntimeError(first_line(answer) if isinstance(answer, BaseException) else "the answer cannot be pickled"))


def _kill_one(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
