"""Interpreters that a triaged program starts, without the many seconds that importing a compiler takes.

A server is forked off this process, which has imported the compiler and compiled nothing. A new interpreter finds
`sitecustomize.py` of `injected/` on its path; as its first act that hands its command line, folder, environment,
input, outputs and other open files over to the server, which forks a process that does the work, and then waits for it
to end. What the server cannot do is left to the interpreter itself.
"""

from __future__ import annotations

import fcntl
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import types
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from conformance.processes import die_with_parent, fork
from conformance.triage.hold import HOLD_VARIABLE, JOURNAL_VARIABLE, Hold, Journal

VARIABLE = "CONFORMANCE_ZYGOTE"  # the socket of the server, in the environment of a triaged program
MESSAGE = 1 << 20
MOST_DESCRIPTORS = 250  # that one message may carry


class Zygote:
    """The server. `holder` is a backend's context manager that holds every compile inside."""

    def __init__(
        self, holder: Callable[[Hold, Journal], Any], run: Callable[[Callable[[], None], Journal], int]
    ) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="zygote-")) / "socket"
        self.environment = dict(os.environ)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self.path))
        listening.listen(16)
        self.pid = fork()
        if self.pid == 0:
            self._serve(listening, holder, run)
        listening.close()

    def close(self) -> None:
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.parent.rmdir()

    def _serve(self, listening: socket.socket, holder: Any, run: Any) -> NoReturn:
        try:
            die_with_parent()
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
            while True:
                connection, _ = listening.accept()
                if os.fork() == 0:
                    listening.close()
                    self._answer(connection, holder, run)
                connection.close()
        finally:
            os._exit(0)

    def _answer(self, connection: socket.socket, holder: Any, run: Any) -> NoReturn:
        """In a process of its own: let the program run, and tell the interpreter that asked how it ended."""
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent()
            message, descriptors, _, _ = socket.recv_fds(connection, MESSAGE, MOST_DESCRIPTORS)
            request = json.loads(message)
            if not request or not self._can(request):
                connection.sendall(b"no\n")
                os._exit(0)
            connection.sendall(b"yes\n")
            pid = os.fork()
            if pid == 0:
                _become(request, descriptors, holder, run)
            connection.sendall(f"{_waited(connection, pid)}\n".encode())
        finally:
            os._exit(0)

    def _can(self, request: dict[str, Any]) -> bool:
        """What torch reads from the environment when it is imported must be what this process had."""
        lasting = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        names = {
            name
            for name in {*request["env"], *self.environment}
            if name.startswith(("TORCH", "PYTORCH", "INDUCTOR", "TRITON"))
        }
        same = all(request["env"].get(name) == self.environment.get(name) for name in names if name not in lasting)
        return same and _work(request["argv"]) is not None


def _waited(connection: socket.socket, pid: int) -> int:
    """How the program ended. If the interpreter that asked is gone, the program is ended, too."""
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    ended = os.pidfd_open(pid)
    selector.register(ended, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd == ended:
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if not connection.recv(1):
                os.kill(pid, signal.SIGKILL)


def _work(argv: list[str]) -> tuple[str, str, list[str]] | None:
    """What an interpreter is asked to do: ("-c" | "-m" | "", text, arguments); None for what is not known."""
    words = argv[1:]
    while words and words[0] in ("-u", "-B", "-q"):
        words = words[1:]
    if len(words) >= 2 and words[0] in ("-c", "-m"):
        return words[0], words[1], words[2:]
    if words and not words[0].startswith("-") and os.path.isfile(words[0]):
        return "", words[0], words[1:]
    return None


def _become(request: dict[str, Any], descriptors: list[int], holder: Any, run: Any) -> NoReturn:
    code = 70
    try:
        die_with_parent()
        _renumber(descriptors, request["descriptors"])
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        tempfile.tempdir = None
        sys.path[:0] = [
            part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part and part not in sys.path
        ]
        journal = Journal(Path(os.environ[JOURNAL_VARIABLE]))
        journal.write("started")
        work = _work(request["argv"])
        assert work is not None
        with holder(Hold.from_json(os.environ[HOLD_VARIABLE]), journal):
            code = run(lambda: _execute(*work), journal)
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)


def _renumber(descriptors: list[int], numbers: list[int]) -> None:
    """Give open files the numbers that the program knows them by. They are moved out of the way first: one may have the
    number that another must get."""
    free = max(numbers) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, free) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for number, descriptor in zip(numbers, moved, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _execute(way: str, text: str, arguments: list[str]) -> None:
    """As the interpreter would."""
    if way == "-m":
        sys.argv = [text, *arguments]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(text, run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if way == "-c":
        sys.argv, source, name = ["-c", *arguments], text, "<string>"
        sys.path.insert(0, "")
    else:
        sys.argv, source, name = [text, *arguments], Path(text).read_text(encoding="utf-8"), text
        sys.path.insert(0, str(Path(text).resolve().parent))
        main.__dict__["__file__"] = text
    exec(compile(source, name, "exec"), main.__dict__)
