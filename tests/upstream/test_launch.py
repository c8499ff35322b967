"""Children as forks of a process that has imported what they need, and as new interpreters where that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_project import Small

PRELOADED = """
import os, pathlib, threading
pathlib.Path({imported!r}).open("a").write("x")
{then}
"""
TESTS = """
import os, pathlib, sys

def test_it():
    pathlib.Path({pids!r}).open("a").write(f"{{os.getpid()}} {{'preloaded' in sys.modules}}\\n")
    assert os.getpid() == os.getsid(0), "a child leads a group that can be killed as a whole"
    assert os.environ["OF_THE_SUITE"] == "1"
"""


class Preloads:
    """The small project with a module to preload, which counts how often it is imported."""

    def __init__(self, small: Small, monkeypatch: pytest.MonkeyPatch, then: str = "") -> None:
        self.small, self.imported, self.pids = small, small.folder / "imported", small.folder / "pids"
        (small.folder / "preloaded.py").write_text(PRELOADED.format(imported=str(self.imported), then=then))
        monkeypatch.setenv("PYTHONPATH", str(small.folder))
        monkeypatch.setenv("OF_THE_SUITE", "1")
        small.write("tests/test_one.py", TESTS.format(pids=str(self.pids)))
        small.write("tests/test_two.py", TESTS.format(pids=str(self.pids)))
        small.write_map(preload=("no_such_module", "preloaded"))

    def run(self) -> list[list[str]]:
        """Run both files; the process of each test, and whether it had the module."""
        found = self.small.run(["tests/test_one.py", "tests/test_two.py"])
        assert {line["verdict"] for line in found.values()} == {"pass"}, found
        return [line.split() for line in self.pids.read_text().splitlines()]


def test_a_module_is_imported_once_and_every_file_has_a_process_of_its_own(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Preloads(small, monkeypatch)
    (one, there), (two, there_too) = project.run()
    assert one != two and there == there_too == "True"
    assert project.imported.read_text() == "x"


def test_what_a_file_does_not_mention_is_not_imported_for_it(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Preloads(small, monkeypatch)
    text = (small.maps / "small.toml").read_text()
    (small.maps / "small.toml").write_text(text.replace('{ ""', '{ "" = ["unittest"], "a_word"'))
    small.write("tests/test_two.py", "# a_word\n" + TESTS.format(pids=str(project.pids)))
    assert [there for _, there in project.run()] == ["False", "True"]


@pytest.mark.parametrize(
    "then",
    ["threading.Thread(target=threading.Event().wait, daemon=True).start()", "os._exit(3)"],
    ids=["it starts a thread", "it dies"],
)
def test_what_cannot_be_forked_is_a_new_interpreter(small: Small, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    (one, there), (two, there_too) = Preloads(small, monkeypatch, then).run()
    assert one != two and there == there_too == "False"


def test_a_server_that_is_killed_between_files_costs_nothing(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Preloads(small, monkeypatch)
    kills = "import os, signal\nfrom test_one_base import *\n\ndef teardown_module():\n    os.kill(os.getppid(), signal.SIGKILL)\n"
    (Path(small.root) / "tests" / "test_one_base.py").write_text((small.root / "tests" / "test_one.py").read_text())
    small.write("tests/test_one.py", kills)
    found = small.run(["tests/test_one.py", "tests/test_two.py"])
    assert found["tests/test_two.py::test_it"]["verdict"] == "pass"
    assert "True" in project.pids.read_text() and "False" in project.pids.read_text()
