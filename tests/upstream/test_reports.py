"""Records of upstream tests in matrix, diff and history, as those of micrographs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_project import Small

from conformance.cli import main

Read = Callable[..., tuple[int, str]]
TESTS = """
def test_stays(): pass
def test_breaks(): {breaks}
def test_moves(): {moves}
"""
GONE = "raise AttributeError(\"module 'torch._inductor' has no attribute 'old'\")"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Read:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "250")

    def run(*words: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        return int(left.value.code or 0), capsys.readouterr().out

    return run


@pytest.fixture
def two(small: Small) -> tuple[Path, Path]:
    """The same tests with two versions of the package: one breaks, one asks for a private name that is gone."""
    old, new = small.folder / "old.jsonl", small.folder / "new.jsonl"
    small.write("tests/test_two.py", TESTS.format(breaks="pass", moves="pass"))
    small.run(["tests/test_two.py"], path=old)
    small.write("tests/test_two.py", TESTS.format(breaks="assert not 'wrong'", moves=GONE))
    small.run(["tests/test_two.py"], path=new, version="2.0")
    return old, new


def test_the_same_tests_with_two_versions(two: tuple[Path, Path], read: Read, tmp_path: Path) -> None:
    old, new = two
    _, printed = read("diff", old, new)
    assert "1.0 → 2.0" in printed, printed
    assert "upstream:tests/test_two.py::test_breaks" in printed and "pass → fail" in printed
    assert "conformance upstream small --src CHECKOUT -f tests/test_two.py -k test_breaks" in printed
    assert "conformance triage" not in printed
    assert "torch 2.0 has no such torch._inductor.old" in printed, "what only a private name moved is told apart"

    _, printed = read("history", old, new)
    assert "upstream:tests/test_two.py::test_breaks" in printed and "2.0" in printed

    _, printed = read("matrix", old, new, "-o", tmp_path / "matrix.json")
    made: dict[str, Any] = json.loads((tmp_path / "matrix.json").read_text())
    assert "upstream:tests/test_two.py::test_breaks" in json.dumps(made)
