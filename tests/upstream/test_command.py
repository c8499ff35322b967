"""`conformance upstream`, and what it says of mistakes: one line, exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_project import Small, interpreter

from conformance.upstream import commands
from conformance.upstream.interpreter import open_interpreter

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small project needs no torch: importing it to ask for its version would take longer than all its tests."""
    monkeypatch.setattr(commands, "open_interpreter", lambda path: interpreter("1.0"))


def test_mistakes_are_told_in_one_line(small: Small, command: Command, tmp_path: Path) -> None:
    without_torch = tmp_path / "python"
    without_torch.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    without_torch.chmod(0o755)
    here = ("small", "--maps", small.maps, "--src", small.root)
    for words, said in {
        ("pytorhc",): "unknown suite 'pytorhc': did you mean pytorch?",
        ("small", "--maps", small.maps): "no checkout given: --src must name a checkout of small",
        ("small", "--maps", small.maps, "--src", tmp_path / "no"): "no such folder",
        ("small", "--maps", small.maps, "--src", small.maps): "is no checkout of small",
        ("small", "--maps", small.maps, "--src", small.root / "tests"): f"did you mean {small.root}?",
        (*here, "-s", "fuson"): "unknown stage 'fuson': did you mean fusion?",
        (*here, "--python", tmp_path / "no_python"): "No such file or directory",
        (*here, "--python", without_torch): "has no torch",
        (*here, "-f", "nothing*"): "unknown test file 'nothing*'",
        (*here, "--resume"): "--resume needs --record",
        (*here, "--summary", tmp_path / "no.jsonl"): "cannot read the record",
    }.items():
        code, printed = command(*words)
        assert code == 2 and said in printed, printed
        assert len(printed.strip().splitlines()) == 1, printed


@pytest.mark.usefixtures("no_torch")
def test_a_run_is_recorded_summarized_and_resumed(small: Small, command: Command) -> None:
    record = small.folder / "run.jsonl"
    words = (
        "small",
        "--maps",
        small.maps,
        "--src",
        small.root,
        "-f",
        "tests/test_functions.py",
        "-f",
        "tests/test_gpu.py",
        "--record",
        record,
    )
    code, printed = command(*words)
    assert code == 0 and "3 tests, 2 run" in printed
    before = record.read_text()
    code, printed = command(*words, "--resume")
    assert code == 0 and record.read_text() == before, "nothing is left to run"
    small.write("tests/test_functions.py", "def test_parameter(): assert False\n")
    code, printed = command(*words[:-1], small.folder / "new.jsonl", "--against", record)
    assert code == 1
    assert "new: tests/test_functions.py::test_parameter" in printed
    code, printed = command("small", "--maps", small.maps, "--summary", small.folder / "new.jsonl", "--against", record)
    assert code == 1 and "1 causes of 1 failures" in printed
    both = ("--against", record, "--against", small.folder / "new.jsonl")
    _, printed = command("small", "--maps", small.maps, "--summary", small.folder / "new.jsonl", *both)
    assert "new: " not in printed.replace("new: fails, and did not before", ""), "it failed in one of the older ones"


def test_the_map_is_checked_and_listed(small: Small, command: Command) -> None:
    here = ("small", "--maps", small.maps, "--src", small.root)
    assert command(*here, "--check-map") == (0, "small 1.0a0: 6 of 6 test files mapped (100.0%), 0 vanished\n")
    small.write("tests/sub/case_test.py", "")
    code, printed = command(*here, "--check-map")
    assert code == 1 and "unmapped  tests/sub/case_test.py" in printed and "6 of 7" in printed
    code, printed = command(*here, "--list", "-s", "cache")
    assert code == 0 and printed.splitlines() == [
        "fusion (and cache)           cpu        tests/test_plain.py: anything"
    ]
    _, printed = command(*here, "--list", "-f", "*_plain.py", "-f", "tests/test_*.py")
    listed = [line.split()[-2] for line in printed.splitlines()]
    assert listed[0] == "tests/test_plain.py:" and len(listed) == len(set(listed)) == 6, "in the order of -f, each once"


@pytest.mark.usefixtures("no_torch")
def test_an_expectation_that_matches_nothing_fails_the_run(small: Small, command: Command) -> None:
    small.expect(
        '[[expect]]\ncell = "*/*/*/upstream:tests/test_functions.py::test_gone"\nverdict = "fail"\n'
        'url = "https://example.org"\nwhy = "known"\n'
    )
    code, printed = command("small", "--maps", small.maps, "--src", small.root, "-f", "tests/test_functions.py")
    assert (
        code == 1
        and "expects */*/*/upstream:tests/test_functions.py::test_gone, which no test that ran here is" in printed
    )


@pytest.mark.slow  # a quarter of a minute of imports
def test_this_interpreter_says_what_it_has() -> None:
    python = open_interpreter(None)
    assert python.packages["torch"] == python.torch and python.gpus >= 0
