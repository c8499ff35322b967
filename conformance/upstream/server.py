"""A process that has torch imported and forks for each job, in the interpreter under test.

Importing torch takes longer than most tests, and each test file and each rung has a process of its own. Started by
`launch.py` as `python server.py SETTINGS.json`; Python 3.9, no dependencies. It reads the settings file of one job a
line from its standard input, and answers on its standard output with one JSON object a line:

    {"refused": ""}         once, when it is ready; or why it must not be forked, then or in place of a job
    {"pid": 123}            a job has been started
    {"code": 0}             the job has ended; negative for a signal
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import random
import select
import signal
import sys
import time
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
POLL = 0.02  # seconds


class Server:
    """Forks one job at a time."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.answers = os.dup(1)  # what is printed below goes into the log, as in a job
        _redirect(settings["log"])
        self.child: Any = None
        self.bootstrap: Any = None

    def say(self, **answer: Any) -> None:
        os.write(self.answers, (json.dumps(answer) + "\n").encode())

    def load(self) -> str:
        """Import what every job needs; why this process must not be forked, or nothing."""
        spec = importlib.util.spec_from_file_location("conformance_upstream_child", os.path.join(HERE, "child.py"))
        assert spec and spec.loader
        self.child = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.child)
        self._preload([])
        if self.settings["bootstrap"]:
            self.bootstrap = self.child.beside("bootstrap").start(self.settings["bootstrap"], self.settings)
        return _refusal()

    def _preload(self, files: list[str]) -> None:
        """Import what jobs with these files need: `module`, or `module:NAME` for a value that is worked out when it is
        first asked for. A file needs what stands under the words that are in its text."""
        texts = [_text(os.path.join(self.settings["root"], file)) for file in files]
        for word in list(self.settings["preload"]):
            if word and not any(word in text for text in texts):
                continue
            for name in self.settings["preload"].pop(word):
                module, _, value = name.partition(":")
                try:
                    bool(getattr(importlib.import_module(module), value or "__name__"))
                except (ImportError, AttributeError):  # the tests that need it will say so
                    continue

    def serve(self) -> None:
        waiting = b""
        while True:
            received = os.read(0, 65536)
            if not received:
                return
            waiting += received
            while b"\n" in waiting:
                path, _, waiting = waiting.partition(b"\n")
                self._job(path.decode())

    def _job(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
        self._preload(settings["files"])
        refused = _refusal()
        if refused:
            self.say(refused=refused)
            return
        server = os.getpid()
        process = os.fork()
        if process == 0:
            code = 1
            try:
                code = self._forked(path, settings, server)
            finally:
                _flush()
                os._exit(code)
        self.say(pid=process)
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                break
            if _closed(0):  # whoever asked for the job is gone
                _kill_group(process)
            time.sleep(POLL)
        self.say(code=os.waitstatus_to_exitcode(status))

    def _forked(self, path: str, settings: dict[str, Any], server: int) -> int:
        os.setsid()
        os.close(self.answers)
        _redirect(settings["log"])
        _without_input()
        os.chdir(settings["work"])
        os.environ.update(settings["environ"])
        random.seed()
        _own_thread_pool()
        sys.argv = [os.path.join(HERE, "child.py"), path]
        return int(self.child.run(settings, server, self.bootstrap))


def _text(file: str) -> str:
    with open(file, encoding="utf-8", errors="replace") as source:
        return source.read()


def _refusal() -> str:
    """Why this process must not be forked; empty if it may."""
    try:
        count = len(os.listdir("/proc/self/task"))
    except OSError:
        return "its threads cannot be counted here"
    return f"the imports started {count - 1} threads, which a fork would lose" if count > 1 else ""


def _own_thread_pool() -> None:
    """torch makes its pool of threads anew in a forked process. Where the threads of a backward pass ask for it at
    once, one finds none, and the process aborts; so it is asked for now."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() == 1:
        torch.set_num_threads(1)


def _redirect(log: str) -> None:
    """Standard output and standard error into a file."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)


def _without_input() -> None:
    """A job reads nothing; the server's input is where jobs come from."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue


def _closed(stream: int) -> bool:
    """Has the other end of this pipe been closed?"""
    poll = select.poll()
    poll.register(stream, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def _kill_group(process: int) -> None:
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def main(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        server = Server(json.load(file))
    refused = server.load()
    server.say(refused=refused)
    if not refused:
        server.serve()
    return 0


if __name__ == "__main__":
    if sys.path and os.path.abspath(sys.path[0]) == HERE:  # the tests must not see the folder of this script
        del sys.path[0]
    sys.exit(main(sys.argv[1]))
