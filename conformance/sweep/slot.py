"""A slot: a place where one worker at a time runs, on this machine or on a node of a cluster.

It makes the environment that a column asks for (once a machine; uv), starts a worker in its interpreter, and keeps that worker for as long as
the next work is of the same column. A worker that died is told in one line; the next question starts another.
"""

from __future__ import annotations

import os
import platform
import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from conformance import paths
from conformance.errors import UsageError, first_line, printable
from conformance.processes import ended_how
from conformance.sweep import worker
from conformance.sweep.spec import Environment, Work
from conformance.virtualenvs import make

Message = dict[str, Any]
GPU_DRIVER = Path("/dev/nvidiactl")


class Slot:
    """`gpu`: whether the worker may see a GPU. One that may not gives the same answers on a machine with a GPU and on one without."""

    def __init__(self, gpu: bool = False, say: Callable[[str], None] = lambda _: None) -> None:
        self.gpu, self.say = gpu, say
        self._open: tuple[str, bytes] | None = None  # the column that the worker has opened
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def ask(
        self, column: str, environment: bytes, work: bytes, argv: list[str], question: Message
    ) -> Iterator[Message]:
        """The worker's answers; the last is {"done"}, {"refused": why} or {"died": how}. `question` is {"list": …} to open the column
        and no more, or what the worker is to do. Environment and work are JSON, as they travel."""
        try:
            if self._open != (column, work) or "list" in question:
                yield from self._opened(column, environment, work, argv, question)
            if "list" in question:
                yield {"done": True}
            elif self._process is not None:
                yield from self._answers(question)
        except (LookupError, UsageError) as error:
            self.close()
            yield {"refused": str(error)}
        except OSError as error:
            self.close()
            yield {"refused": f"{error.filename or 'the worker'}: {error.strerror or error}"}

    def _opened(
        self, column: str, environment: bytes, work: bytes, argv: list[str], question: Message
    ) -> Iterator[Message]:
        self.close()
        described = msgspec.json.decode(environment, type=Environment)
        self._start(interpreter(described, self.say), variables(described, self.gpu))
        asked = {"open": msgspec.to_builtins(msgspec.json.decode(work, type=Work)), "argv": argv}
        hello: Message = {}
        for hello in self._answers({**asked, "list": bool(question.get("list"))}):
            if "list" in question or "hello" not in hello:
                yield hello
        if "hello" in hello:
            self._open = (column, work)
        else:
            self.close()

    def _start(self, python: str, extra: dict[str, str]) -> None:
        env = {**os.environ, "PYTHONPATH": paths.import_path(), worker.PARENT: str(os.getpid()), **extra}
        self._stderr = tempfile.TemporaryFile(prefix="conformance-sweep-")  # noqa: SIM115 - closed with the worker
        command = [
            python,
            "-P",
            "-m",
            "conformance.sweep.worker",
        ]  # -P: nothing is imported from where the user happens to be
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._stderr, env=env)
        except OSError as error:
            raise UsageError(f"cannot start {python}: {error.strerror}") from None

    def _answers(self, question: Message) -> Iterator[Message]:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(question) + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            yield {"died": self._how()}
            return
        for raw in process.stdout:
            if not raw.endswith(b"\n"):
                break
            message = msgspec.json.decode(raw)
            yield message
            if not {"hello", "done", "refused"}.isdisjoint(message):
                return
        yield {"died": self._how()}

    def _how(self) -> str:
        """How the worker ended, in one line, and the last that it printed."""
        assert self._process is not None and self._stderr is not None
        code = self._process.wait()
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 4096))
        printed = printable(self._stderr.read().decode("utf-8", "replace")).splitlines()
        last = next((line.strip() for line in reversed(printed) if line.strip()), "")
        self.close()
        return f"the worker {ended_how(code)}" + (f"; it printed last: {last[:200]}" if last else "")

    def close(self) -> None:
        """End the worker, with all that it started."""
        process, self._process, self._open = self._process, None, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None


class SlotThread(threading.Thread):
    """A slot and the one thread that uses it: a worker ends when the thread that started it does. Each question's answers go to `tell`, and
    then None."""

    def __init__(self, gpu: bool, tell: Callable[[Message | None], None]) -> None:
        super().__init__(name="conformance slot", daemon=True)
        self.slot, self.tell = Slot(gpu), tell
        self._questions: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()

    def ask(self, *question: Any) -> None:
        """As Slot.ask."""
        self._questions.put(question)

    def stop(self) -> None:
        """End after the question that is being answered."""
        self._questions.put(None)

    def run(self) -> None:
        while (question := self._questions.get()) is not None:
            try:
                for message in self.slot.ask(*question):
                    self.tell(message)
            except Exception as error:  # a defect of the suite: whoever asked must not wait forever
                self.slot.close()
                self.tell({"died": f"the slot failed: {first_line(error)}"})
            self.tell(None)
        self.slot.close()


def interpreter(environment: Environment, say: Callable[[str], None] = lambda _: None) -> str:
    """The Python of an environment, which is made if it is not there. LookupError and UsageError say, in one line, why there is none."""
    if environment.interpreter:
        if not os.access(environment.interpreter, os.X_OK):
            raise UsageError(f"no Python at {environment.interpreter}: name an interpreter that exists, on every node")
        return environment.interpreter
    if environment.wheels and not Path(environment.wheels).is_dir():
        raise UsageError(f"no folder of wheels at {environment.wheels}")
    return make(environment.recipe(), say)


def variables(environment: Environment, gpu: bool) -> dict[str, str]:
    """What the worker's process gets besides what this one has."""
    found = dict(environment.variables)
    if environment.commit:
        from conformance.triage.bisect import full_commit, worktree

        source = Path(environment.trtllm_src)
        found["TRTLLM_SRC"] = str(worktree(source, full_commit(source, environment.commit)))
    elif environment.trtllm_src:
        found["TRTLLM_SRC"] = environment.trtllm_src
    if not gpu and GPU_DRIVER.exists():
        found["CUDA_VISIBLE_DEVICES"] = ""
    return found


def machine() -> str:
    return platform.machine()
