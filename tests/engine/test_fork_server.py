"""The process that cases are forked from: what happens to it, to those that it started, and what it does not hold."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import library
from conformance.errors import UsageError
from conformance.fork_server import ForkServer
from conformance.processes import Job

Say = Callable[[Any], None]


@pytest.fixture
def server() -> Iterator[ForkServer]:
    one = ForkServer()
    yield one
    one.close()


def answers(text: str, say: Say) -> None:
    say(text)


def kills_the_server_once(mark: str, say: Say) -> None:
    say("begun")
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(30)


def sleeps(pid_file: str, say: Say) -> None:
    Path(pid_file).write_text(str(os.getpid()))
    say("asleep")
    time.sleep(60)


def finds(name: str, say: Say) -> None:
    say((library.find(name).name(), [m for m in sys.modules if m.startswith(f"{library.PACKAGE}.")]))


def leaves_a_mark(path: str) -> None:
    Path(path).touch()


def is_refused() -> None:
    raise UsageError("no such thing")


def said(server: ForkServer, *jobs: Job) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for event in server.run(jobs, size=2, limit=20):
        found.setdefault(event.job.key, []).append(event.death or event.said)
    return found


def test_jobs_say_what_they_have_to_say(server: ForkServer) -> None:
    assert said(server, Job("a", answers, ("x",)), Job("b", answers, ("y",))) == {"a": ["x", None], "b": ["y", None]}
    assert said(server, Job("c", answers, ("z",))) == {"c": ["z", None]}, "and again"


def test_a_server_that_is_killed_costs_the_jobs_that_had_begun(server: ForkServer, tmp_path: Path) -> None:
    jobs = [Job("kills", kills_the_server_once, (str(tmp_path / "mark"),))]
    jobs += [Job(str(number), answers, ("fine",)) for number in range(6)]
    server.call(leaves_a_mark, str(tmp_path / "prepared"))
    events = list(server.run(jobs, size=1, limit=20))
    deaths = {event.job.key: event.death.reason for event in events if event.death}
    assert deaths == {
        "kills": "the process that it was forked from was ended by SIGKILL; out of memory, or killed from outside"
    }
    assert {event.job.key for event in events if event.said == "fine"} == {str(number) for number in range(6)}
    assert sum(event.ended for event in events) == len(jobs)


def test_a_new_server_is_prepared_as_the_first_was(server: ForkServer, tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    server.call(leaves_a_mark, str(prepared))
    said(server, Job("a", answers, ("x",)))
    prepared.unlink()
    list(server.run([Job("kills", kills_the_server_once, (str(tmp_path / "mark"),))], size=1, limit=20))
    said(server, Job("b", answers, ("y",)))
    assert prepared.exists()


def test_what_a_call_raises_is_raised_where_jobs_are_run(server: ForkServer) -> None:
    server.call(is_refused)
    with pytest.raises(UsageError, match="no such thing"):
        said(server, Job("a", answers, ("x",)))


def test_whoever_stops_asking_ends_everything(tmp_path: Path) -> None:
    server, pid_file = ForkServer(), tmp_path / "pid"
    running = server.run([Job("sleeps", sleeps, (str(pid_file),))], size=1, limit=60)
    assert next(running).said == "asleep"
    server.close()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid_file.read_text()}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid_file.read_text()}").exists()


def test_a_case_imports_the_file_of_its_micrograph_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(f"{library.PACKAGE}.")]:  # another test's
        monkeypatch.delitem(sys.modules, name)
    server = ForkServer()
    found = said(server, Job("a", finds, ("norm.rmsnorm",)), Job("b", finds, ("norm.rmsnorm",)))
    server.close()
    assert [first for first, *_ in found.values()] == [("norm.rmsnorm", [f"{library.PACKAGE}.norm"])] * 2


# A GPU that NVML alone knows of. Whoever counts GPUs by CUDA instead starts it, and no process forked from that one can use CUDA.
ON_A_GPU = """
import torch
torch.cuda._device_count_nvml = lambda: 1
from conformance.cli import main
main("run -b inductor -t cuda -m norm.rmsnorm -n 1 --no-baseline --fresh --record r.jsonl".split())
"""


def test_nobody_starts_cuda_before_the_cases_are_forked(tmp_path: Path) -> None:
    """Where a GPU is, no cell of it would be examined: "Cannot re-initialize CUDA in forked subprocess"."""
    env = {name: value for name, value in os.environ.items() if name != "PYTORCH_NVML_BASED_CUDA_CHECK"}
    run = subprocess.run(
        [sys.executable, "-c", ON_A_GPU], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert "E error" in run.stdout, run.stderr[-2000:]  # there is no GPU, or no driver
    assert "forked subprocess" not in run.stdout
