"""How a child is started: in a new interpreter, or as a fork of one that has torch imported."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

CHILD = Path(__file__).with_name("child.py")
SERVER = Path(__file__).with_name("server.py")
WAIT = 0.05


class Process(Protocol):
    """A started child, leader of a process group of its own."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...


class Launcher(Protocol):
    def start(self, settings: Path, work: Path, log: Path, env: Mapping[str, str]) -> Process: ...

    def close(self) -> None: ...


class NewInterpreters:
    """Every child is a new interpreter."""

    def __init__(self, python: Path) -> None:
        self.python = python

    def start(self, settings: Path, work: Path, log: Path, env: Mapping[str, str]) -> Process:
        with log.open("wb") as file:
            return subprocess.Popen(
                [str(self.python), str(CHILD), str(settings)],
                cwd=work,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def close(self) -> None:
        return


class Fork:
    """A child that a server forked; the server says when it has ended."""

    def __init__(self, server: Server, pid: int) -> None:
        self.server, self.pid = server, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and (answer := self.server.answer(0.0)) is not None:
            self.returncode = answer.get("code", -9)
        return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(WAIT)
        return self.returncode if self.returncode is not None else -9


class Server:
    """One process that has imported what every child needs, and forks for each. Where it cannot be forked, or has
    died, children are new interpreters."""

    def __init__(self, python: Path, settings: Mapping[str, Any], folder: Path, env: Mapping[str, str]) -> None:
        self.instead = NewInterpreters(python)
        self.settings, self.folder, self.env = settings, folder, env
        self.process: subprocess.Popen[bytes] | None = None
        self.refused: str | None = None  # not asked yet
        self._received = b""

    def start(self, settings: Path, work: Path, log: Path, env: Mapping[str, str]) -> Process:
        if self.refused is None:
            self._open()
        if not self.refused and self._ask(settings):
            answer = self.answer(None) or {}
            if "pid" in answer:
                return Fork(self, answer["pid"])
            self.refused = str(answer.get("refused", "it is gone"))
        return self.instead.start(settings, work, log, env)

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "server.json"
        file.write_text(json.dumps({**self.settings, "log": str(self.folder / "server.txt")}))
        self.process = subprocess.Popen(
            [str(self.instead.python), str(SERVER), str(file)],
            cwd=self.folder,
            env=dict(self.env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        answer = self.answer(None) or {}
        self.refused = str(answer.get("refused", "it did not start"))

    def _ask(self, settings: Path) -> bool:
        assert self.process and self.process.stdin
        try:
            self.process.stdin.write(f"{settings}\n".encode())
            self.process.stdin.flush()
        except OSError:
            self.refused = "it is gone"
            return False
        return True

    def answer(self, seconds: float | None) -> dict[str, Any] | None:
        """The next thing that the server says, or nothing within these seconds; an empty answer if it is gone."""
        assert self.process and self.process.stdout
        while b"\n" not in self._received:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                return None
            received = os.read(self.process.stdout.fileno(), 65536)
            if not received:
                self.refused = "it is gone"
                return {}
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        return dict(json.loads(line))

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin and self.process.stdout
            self.process.stdin.close()
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
