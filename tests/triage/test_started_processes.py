"""Processes that a triaged script starts are held like the script, whatever starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.backends.inductor.triage.holder import holding
from conformance.triage.ending import Ending
from conformance.triage.hold import Hold
from conformance.triage.runs import Runs
from conformance.triage.subject import script

# What the child compiles is seen in the journal; what it is given and what it answers goes through multiprocessing's pipes.
PROGRAM = """
import multiprocessing
import sys

import torch


def work(number, answers):
    answers.put(torch.compile(lambda x: x + number)(torch.ones(2)).tolist())


if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    answers = context.Queue()
    child = context.Process(target=work, args=(2, answers))
    child.start()
    got = answers.get()
    child.join()
    sys.exit(child.exitcode or got != [3.0, 3.0])
"""

BOMB = """
import os
import sys

open(os.path.join({folder!r}, str(os.getpid())), "w").close()
sys.exit(os.system(f"{{sys.executable}} {{__file__}}") != 0)
"""


def held(file: Path, text: str, rung: str) -> Ending:
    """How a script ends at a rung, where the interpreters that it starts are handed over."""
    file.write_text(text)
    runs = Runs(holding, limit=100.0)
    runs.prepare()
    try:
        return runs(script(file, ()), Hold(rung))[0]
    finally:
        runs.close()


@pytest.mark.own_process
def test_a_script_that_starts_itself_for_ever_is_stopped(tmp_path: Path) -> None:
    started = tmp_path / "started"
    started.mkdir()
    ending = held(tmp_path / "bomb.py", BOMB.format(folder=str(started)), "eager")
    assert ending.code == 1 and "more than 5 deep" in ending.output
    assert len([*started.iterdir()]) == 6  # the script, and five that it started


@pytest.mark.own_process
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_of_multiprocessing_is_forked_from_the_process_that_has_torch(method: str, tmp_path: Path) -> None:
    ending = held(tmp_path / "starts.py", PROGRAM.format(method=method), "captured")
    assert ending.code == 0, ending.output
    assert [event["event"] for event in ending.events if event["event"] == "started"], "the child imported torch itself"
    assert ending.named("graph"), "the compile of the child was not held"
