"""Jobs in forked processes: whatever a process does, its own job ends with a reason and all others run on; nothing is left behind."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance import paths
from conformance.fresh import Died, Fresh
from conformance.processes import Death, Job, Pool, in_fork

Say = Callable[[Any], None]


def answers(say: Say) -> None:
    say("an answer")


def segfaults(say: Say) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def is_killed(say: Say) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def is_stopped(say: Say) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def hangs(say: Say) -> None:
    while True:
        time.sleep(60)


def hangs_in_c(say: Say) -> None:
    re.match(r"(a+)+$", "a" * 40 + "b")  # holds the GIL


def exits_at_once(say: Say) -> None:
    os._exit(3)


def exits(say: Say) -> None:
    sys.exit("enough")


def interrupts_itself(say: Say) -> None:
    raise KeyboardInterrupt


def raises_odd_text(say: Say) -> None:
    raise ValueError("lone \udcff surrogate, \x1b[31mred\x1b[0m")


def floods(say: Say) -> None:
    for _ in range(20_000):
        print("x" * 500)
    say("flooded")


def takes_all_memory(say: Say) -> None:
    held = []
    while True:
        held.append(bytearray(64 << 20))
        time.sleep(0.02)


def closes_its_output(say: Say) -> None:
    os.close(1)
    os.close(2)
    say("still here")


def uses_up_descriptors(say: Say) -> None:
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        say("used up")


Fate = tuple[Callable[[Say], None], str, str]  # the job, what it says, the reason it dies for

SILENT: list[Fate] = [
    (is_stopped, "", "no end after 8 s: the process was stopped"),
    (hangs, "", "no end after 8 s, in File .*in hangs"),
    (hangs_in_c, "", "no end after 8 s, in File .*in match"),
]

FATES: list[Fate] = [
    (segfaults, "", "ended by SIGSEGV, in File .*in segfaults"),
    (is_killed, "", "ended by SIGKILL"),
    (exits_at_once, "", "ended with exit code 3"),
    (exits, "", "SystemExit: enough"),
    (interrupts_itself, "", "KeyboardInterrupt"),
    (raises_odd_text, "", r"ValueError: lone \\udcff surrogate, \\x1b\[31mred"),
    (takes_all_memory, "", "more than 0.5 GiB of memory"),
    (floods, "flooded", ""),
    (closes_its_output, "still here", ""),
    (uses_up_descriptors, "used up", ""),
]


@pytest.mark.parametrize("size", [2, pytest.param(1, marks=pytest.mark.slow)])
# Only who is ended by the clock gets a short limit: on a machine that is busy, ten megabytes of output have taken more than five seconds.
@pytest.mark.parametrize(("fates", "limit"), [(SILENT, 8), (FATES, 120)], ids=["silent", "others"])
def test_every_job_has_its_own_fate(fates: list[Fate], limit: int, size: int) -> None:
    jobs = [job for fate, _, _ in fates for job in (Job(fate.__name__, fate), Job("answers", answers))]
    said: dict[str, Any] = {}
    deaths: dict[str, Death] = {}
    ended = 0
    for event in Pool(size, limit=limit, memory=512 << 20).run(jobs):
        ended += event.ended
        if event.said is not None:
            said.setdefault(event.job.key, event.said)
        if event.death is not None:
            deaths[event.job.key] = event.death
    assert ended == len(jobs) and said["answers"] == "an answer" and "answers" not in deaths
    for fate, words, reason in fates:
        assert said.get(fate.__name__, "") == words
        assert bool(reason) == (fate.__name__ in deaths)
        if reason:
            assert re.search(reason, deaths[fate.__name__].reason), deaths[fate.__name__].reason
            assert deaths[fate.__name__].timeout == reason.startswith("no end")


def one_of_three(number: int, say: Say) -> bool:
    if number == 2:
        segfaults(say)
    say(os.getpid())
    return number == 4


def test_jobs_that_share_a_process_are_started_again_after_a_death_and_after_one_that_retires() -> None:
    jobs = [Job(number, one_of_three, (number,), group="gpu") for number in range(7)]
    pids: dict[int, int] = {}
    dead = []
    for event in Pool(1, limit=20, share=7).run(jobs):
        if event.said is not None:
            pids[event.job.key] = event.said
        if event.death is not None:
            dead.append(event.job.key)
    assert dead == [2] and sorted(pids) == [0, 1, 3, 4, 5, 6]
    assert pids[0] == pids[1] != pids[3] == pids[4] != pids[5] == pids[6]


def says_where(seconds: float, say: Say) -> None:
    time.sleep(seconds)
    say(os.getpid())


def test_a_process_that_is_done_takes_the_next_job_so_that_none_waits_behind_a_long_one() -> None:
    jobs = [Job(number, says_where, (2.0 if number == 0 else 0.0,), group="gpu") for number in range(6)]
    events = [event for event in Pool(2, limit=20, share=5).run(jobs) if event.said is not None]
    pids = {event.job.key: event.said for event in events}
    assert events[-1].job.key == 0 and len({pids[number] for number in range(1, 6)}) == 1
    assert pids[0] != pids[1]


def test_a_process_ends_after_its_share() -> None:
    jobs = [Job(number, says_where, (0.0,), group="gpu") for number in range(5)]
    pids = {event.job.key: event.said for event in Pool(1, limit=20, share=2).run(jobs) if event.said is not None}
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


def test_a_temporary_folder_goes_with_its_process() -> None:
    def leaves_files(say: Say) -> None:
        import tempfile

        folder = tempfile.mkdtemp()
        (Path(folder) / "left").write_text("x")
        say(folder)
        os._exit(1)

    folder = next(event.said for event in Pool(1, limit=20).run([Job("a", leaves_files)]) if event.said)
    assert not Path(folder).exists()


def test_a_killed_controller_leaves_no_process_behind(tmp_path: Path) -> None:
    script = tmp_path / "controller.py"
    script.write_text(
        "import os, time\n"
        "from conformance.processes import Job, Pool\n"
        "def job(say):\n"
        "    print(os.getpid(), flush=True)\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "    time.sleep(600)\n"
        "for _ in Pool(1, limit=600).run([Job('a', job)]): pass\n"
    )
    env = {**os.environ, "PYTHONPATH": paths.import_path()}
    controller = subprocess.Popen([sys.executable, str(script)], env=env)
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    controller.kill()
    controller.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and Path(f"/proc/{child}").exists():
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()


# ---------------------------------------------------------------------------------------------------- fresh


STATE: list[str] = []


def remember(word: str) -> list[str]:
    STATE.append(word)
    return list(STATE)


def fail() -> None:
    raise ValueError("not today")


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def test_a_fresh_process_knows_nothing_of_what_came_after_it_was_prepared() -> None:
    fresh = Fresh()
    fresh.prepare()
    STATE.append("compiled")
    try:
        assert fresh.call(remember, "one") == ["one"] and fresh.call(remember, "two") == ["two"]
        with pytest.raises(ValueError, match="not today"):
            fresh.call(fail)
        with pytest.raises(Died, match="SIGSEGV"):
            fresh.call(crash)
        with pytest.raises(Died, match="no end after 1 s"):
            fresh.call(time.sleep, 60, limit=1)
        assert fresh.call(remember, "three") == ["three"]
    finally:
        fresh.close()
        STATE.clear()


def test_a_question_in_a_fork_leaves_nothing_behind() -> None:
    assert in_fork(lambda: remember("asked")) == ["asked"] and STATE == []


# ------------------------------------------------------------------------------------- is a fork as fresh as new?


def compile_and_tell(say: Say) -> None:
    """The state of Dynamo and Inductor before and after a compile, and the generated program."""
    import tempfile

    import torch

    from conformance.backends.inductor.compiled import empty_caches
    from conformance.backends.inductor.seam import seam
    from conformance.backends.inductor.watch import Watch, watching

    def counted() -> dict[str, Any]:
        found = {name: dict(values) for name, values in seam.counters.items() if values}
        return found | {"kernels": seam.metrics.generated_kernel_count}

    torch.set_num_threads(2)
    before, watch = counted(), Watch()
    with tempfile.TemporaryDirectory() as folder, empty_caches(Path(folder)), watching(watch):
        torch.compile(lambda x: torch.softmax(x * 3 + 1, -1))(torch.ones(8, 33))
    say(
        {"before": before, "after": counted(), "source": [g.kernels for g in watch.graphs], "guards": len(watch.events)}
    )


FORKED = """
from conformance import backends
from conformance.processes import Job, Pool
from conformance.target import CPU
backends.get("inductor").preload(CPU)
told = [event.said for event in Pool(1, limit=240).run([Job(i, compile_and_tell) for i in range(2)]) if event.said]
"""
NEW = "told = []\ncompile_and_tell(told.append)\n"


def told_by_a_new_interpreter(code: str, folder: Path) -> list[dict[str, Any]]:
    """What `code` puts into `told`, in a process of its own: this one has compiled for other tests."""
    import pickle

    answer = folder / "answer"
    lines = [
        "import pickle, sys",
        "sys.path.insert(0, sys.argv[1])",
        "from test_processes import compile_and_tell",
        code,
    ]
    lines += ["open(sys.argv[2], 'wb').write(pickle.dumps(told))"]
    command = [sys.executable, "-c", "\n".join(lines), str(Path(__file__).parent), str(answer)]
    env = {**os.environ, "PYTHONPATH": paths.import_path()}
    subprocess.run(command, env=env, check=True, timeout=240, capture_output=True)
    told: list[dict[str, Any]] = pickle.loads(answer.read_bytes())
    return told


def test_a_fork_is_as_fresh_as_a_new_process(tmp_path: Path) -> None:
    """Nothing of what an earlier process compiled is there, and what is compiled is what a new interpreter compiles."""
    first, second = told_by_a_new_interpreter(FORKED, tmp_path)
    [new] = told_by_a_new_interpreter(NEW, tmp_path)
    assert first == second == new


BACKWARD = """
import torch
torch.set_num_threads(2)
from conformance import backends
from conformance.fresh import FRESH
from conformance.library import load
from conformance.session import results_here
from conformance.stage import Stage
from conformance.target import CPU
backends.get("inductor").preload(CPU)
micrograph = load()["upstream.cache.op_backward_edited"]
FRESH.prepare()
for _ in range(5):
    print(results_here(micrograph, backends.get("eager"), CPU, [Stage.RUNTIME])[Stage.RUNTIME].verdict)
"""


def test_a_backward_pass_in_a_process_forked_twice() -> None:
    """torch makes its pool of threads anew there; two threads that asked for it at once ended the process (eight plays in twelve)."""
    asked = [sys.executable, "-c", BACKWARD]
    done = subprocess.run(asked, cwd=paths.PACKAGE.parent, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["pass"] * 5, done.stdout + done.stderr[-2000:]


class ResultsFirst(selectors.DefaultSelector):
    """The end of a process is seen before what it printed."""

    def select(self, timeout: float | None = None) -> Any:
        time.sleep(1.0)  # by then it has ended
        return sorted(super().select(timeout), key=lambda event: event[0].fd == event[0].data.output)


def test_what_a_process_printed_last_is_told_whatever_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "DefaultSelector", ResultsFirst)

    def ends(say: Any) -> None:
        raise RuntimeError("no such file")

    (death,) = [event.death for event in Pool(1, limit=60).run([Job("ends", ends)]) if event.death]
    assert "no such file" in death.reason
