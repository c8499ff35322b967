"""Sweeps on this machine, with real workers in real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance import paths
from conformance.sweep.summary import end
from tests.sweep.support import KIND, null, run_here, verdicts

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs /bin/sh")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))


def test_two_environments_a_record_each_and_a_unit_that_kills_its_worker(tmp_path: Path) -> None:
    """Then what is made of the records: the matrix, a diff of the neighbours, the history, the summary."""
    folder = tmp_path / "records"
    environments = [null("old", "12", "kill=5", torch="2.14.0"), null("new", "12", torch="2.15.0")]
    scheduler, _ = run_here(environments, folder)
    machine = str(scheduler.columns[0].place)
    old, new = verdicts(folder / f"old-{machine}.jsonl"), verdicts(folder / f"new-{machine}.jsonl")
    assert len(old) == len(new) == 84 and set(new.values()) == {"pass"}
    assert {name.rpartition(".")[2] for name, verdict in old.items() if verdict == "error"} == {"000005"}
    lines = (folder / f"old-{machine}.jsonl").read_text()
    assert "the worker was ended by SIGKILL; out of memory, or killed from outside" in lines
    ending = end(scheduler.columns, folder, 1.0, 1, allow_unavailable=False)
    assert (ending.problems, ending.code(None)) == ([], 1)
    assert {path.name for path in ending.written} >= {"matrix.html", "matrix.md", "history.md", "summary.md"}
    (diff,) = (folder / "diffs").glob("null-cpu-*2.14.0-2.15.0.md")
    summary = (folder / "summary.md").read_text()
    assert "168 cells in 2 columns, 7 unexpected" in summary and diff.read_text()
    heads = [json.loads(path.open().readline()) for path in sorted(folder.glob("*.jsonl"))]
    assert len({head["suite"] for head in heads}) == 1, "one revision of the suite"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("refuse=1", "this environment is refused"),
        ("exit=3", "the worker ended with exit code 3"),
    ],
)
def test_an_environment_that_fails_is_one_line_and_the_others_go_on(tmp_path: Path, word: str, told: str) -> None:
    scheduler, said = run_here([null("bad", "3", word), null("good", "3")], tmp_path / "records")
    bad, good = scheduler.columns
    assert (bad.state, good.finished, good.lines) == ("failed", True, 21)
    assert told in bad.problem and len(said) == 1
    ending = end(scheduler.columns, tmp_path / "records", 1.0, 1, allow_unavailable=False)
    assert ending.code(None) == 2 and ending.problems == [f"{bad.name}: {bad.problem}"]


COMMAND = [sys.executable, "-m", "conformance.cli", "sweep", "--kind", KIND, "-n", "1"]


def test_a_killed_sweep_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    """SIGKILL in the middle; then --resume: every cell once."""
    words = [*COMMAND, "--python", f"a={sys.executable}", "-m", "40", "-m", "slow=100", "-o", str(tmp_path / "records")]
    env = {**os.environ, "PYTHONPATH": paths.import_path()}
    sweep = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    record = None
    while sweep.poll() is None and (record is None or record.read_text().count("\n") < 30):
        record = next((tmp_path / "records").glob("*.jsonl"), None)
        time.sleep(0.02)
    workers = _children(sweep.pid)
    sweep.send_signal(signal.SIGKILL)
    sweep.wait()
    assert record is not None and workers
    before = len(record.read_text().splitlines()) - 1
    assert 0 < before < 280
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers), "its workers end with it"
    done = subprocess.run([*words, "--resume"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(verdicts(record)) == 280


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]
