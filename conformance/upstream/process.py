"""One child process: started, listened to, ended when it hangs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from conformance.upstream.launch import Launcher, NewInterpreters
from conformance.upstream.rungs import Rung

POLL = 0.05
LEAVING = 60.0  # seconds to leave after the last test: worker pools take their time
LOG_TAIL = 200_000


@dataclass(frozen=True)
class Job:
    """What a child is to do: some test files, whole or at a rung."""

    python: Path
    root: Path  # the checkout; test names are relative to it
    files: tuple[str, ...]
    path: tuple[str, ...]  # for PYTHONPATH, absolute
    arguments: tuple[str, ...] = ()
    main_guard: bool = True
    bootstrap: str = ""
    rung: Rung | None = None
    layers: tuple[str, ...] = ()  # to probe for, at a rung
    keyword: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


class Child:
    """A running child. `events()` gives what it says; it ends with `{"event": "gone", "how": …}`.

    When a test takes longer than `timeout` seconds, or the collection longer than `collecting`, its process group is
    killed; the last event then has `hung` set.
    """

    def __init__(
        self, job: Job, folder: Path, timeout: float, collecting: float, launcher: Launcher | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.events_file, self.selection_file, self.log_file = (
            folder / name for name in ("events.jsonl", "selection.json", "log.txt")
        )
        for file in (self.events_file, self.selection_file, self.log_file):
            file.unlink(missing_ok=True)
        self.timeout, self.collecting = timeout, collecting
        work = folder / "work"  # what tests write into the current folder
        work.mkdir(exist_ok=True)
        env = environment(job, folder)
        settings = folder / "settings.json"
        settings.write_text(json.dumps({**self._settings(job, folder), "work": str(work), "environ": env}))
        self.process = (launcher or NewInterpreters(job.python)).start(settings, work, self.log_file, env)

    def _settings(self, job: Job, folder: Path) -> dict[str, Any]:
        ini = folder / "pytest.ini"
        ini.write_text("[pytest]\n")
        arguments = [
            *(str(job.root / file) for file in job.files),
            "-c",
            str(ini),
            f"--rootdir={job.root}",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:conformance",
        ]
        arguments += [
            "-q",
            "--tb=no",
            "--no-header",
            "--no-summary",
            "--continue-on-collection-errors",
            "-o",
            f"faulthandler_timeout={self.timeout * 0.9}",
        ]
        arguments += [*job.arguments, *(["-k", job.keyword] if job.keyword else [])]
        return {
            "arguments": arguments,
            "events": str(self.events_file),
            "selection": str(self.selection_file),
            "log": str(self.log_file),
            "parent": os.getpid(),
            "root": str(job.root),
            "files": job.files,
            "rung": {**asdict(job.rung), "environ": {}} if job.rung else None,
            "layers": job.layers,
            "bootstrap": job.bootstrap,
            "main_guard": job.main_guard,
        }

    def select(self, tests: list[str]) -> None:
        """Say which of the collected tests to run."""
        temporary = self.selection_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(tests))
        temporary.replace(self.selection_file)

    def events(self) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + self.collecting
        position, hung = 0, False
        while True:
            over = self.process.poll() is not None
            lines, position = self._new_lines(position)
            for line in lines:
                event = json.loads(line)
                yield event
                wait = {"start": self.timeout, "collected": self.collecting}.get(event["event"], LEAVING)
                deadline = time.monotonic() + wait
            if over:
                break
            if time.monotonic() > deadline:
                hung = True
                self.kill()
            elif not lines:
                time.sleep(POLL)
        self.kill()  # what the tests left running
        yield {"event": "gone", "code": self.process.returncode, "hung": hung, "how": self._how(hung)}

    def _new_lines(self, position: int) -> tuple[list[str], int]:
        if not self.events_file.exists():
            return [], position
        with self.events_file.open("rb") as file:
            file.seek(position)
            raw = file.read()
        whole = raw[: raw.rfind(b"\n") + 1]
        return whole.decode("utf-8", "replace").splitlines(), position + len(whole)

    def kill(self) -> None:
        """End the child and everything it started: they are one process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _how(self, hung: bool) -> str:
        """In words how the process ended, with the place where it was."""
        place = stack_place(self.log())
        if hung:
            return "did not end in time" + (f": {place}" if place else "")
        code = self.process.returncode or 0
        if code < 0:
            return f"killed by {_signal(-code)}" + (f": {place}" if place else "")
        return f"left with exit code {code}"

    def log(self) -> str:
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as file:
            file.seek(max(0, self.log_file.stat().st_size - LOG_TAIL))
            return file.read().decode("utf-8", "replace")


def stack_place(log: str) -> str:
    """`fx_codegen_and_compile in compile_fx.py`: the innermost frame of the thread that faulthandler names first."""
    dumps = re.split(r"(?:Current thread|Timeout \().*\n|most recent call first\):?\n", log)
    for part in reversed(dumps):
        frame = re.match(r"(?:Thread .*\n)?\s*File \"([^\"]+)\", line (\d+) in (\S+)", part)
        if frame:
            return f"{frame.group(3)} in {Path(frame.group(1)).name}"
    return ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def environment(job: Job, folder: Path) -> dict[str, str]:
    """The caller's environment, with the checkout's test folders importable and nothing written into the checkout."""
    env = dict(os.environ)
    path = [str(job.root / entry) for entry in job.path] + [entry for entry in [env.get("PYTHONPATH", "")] if entry]
    env.update(
        {
            "PYTHONPATH": os.pathsep.join(path),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "TRITON_CACHE_DIR": str(folder / "triton"),
            "PYTHONUNBUFFERED": "1",
        }
    )
    env.update(job.env)
    env.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # it goes into a folder of our own; without it, importing torch takes 5 times as long
    return env
