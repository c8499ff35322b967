"""A small checkout of a project that does not exist: its tests pass, fail, crash, hang, skip, and need what is not
here."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

from conformance.record import read
from conformance.record_writer import Writer
from conformance.upstream import stage_map
from conformance.upstream.checkout import Checkout, open_checkout
from conformance.upstream.interpreter import Interpreter
from conformance.upstream.results import Results
from conformance.upstream.runner import Options, Runner

PLAIN = """
import ctypes, os, time, unittest

class TestPlain(unittest.TestCase):
    def test_a_passes(self): pass
    def test_b_fails(self): self.assertEqual(1, 2)
    def test_c_crashes(self): ctypes.string_at(0)
    def test_d_hangs(self): time.sleep(1000)
    def test_e_leaves(self): os._exit(7)
    @unittest.skip("no such thing here")
    def test_f_skipped(self): pass
    @unittest.expectedFailure
    def test_g_known(self): self.fail("known")
    @unittest.expectedFailure
    def test_h_mended(self): pass
    def test_i_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)
    def test_j_package(self): import no_such_package
    def test_k_fails_in_the_same_way(self): self.assertEqual(1, 2)
    def test_z_last(self): pass
"""
FUNCTIONS = """
import pytest

@pytest.mark.parametrize("text", ["a/b", "c::d"])
def test_parameter(text): assert text
"""
GUARDED = """
HAS_GPU = False

def test_only_on_a_gpu(): raise AssertionError("ran without a GPU")

if __name__ == "__main__":
    from unittest import main as run_tests
    if HAS_GPU:
        run_tests()
"""
FILES = {
    "tests/test_plain.py": PLAIN,
    "tests/test_functions.py": FUNCTIONS,
    "tests/test_guarded.py": GUARDED,
    "tests/test_gpu.py": "def test_gpu(): raise AssertionError('ran without a GPU')\n",
    "tests/test_moved.py": "from json._no_such_module import private_name\n",
    "tests/test_skipped.py": "import unittest\nraise unittest.SkipTest('not on this system')\n",
    "tests/helper.py": "",
    "version.txt": "1.0a0\n",
}
MAP = """
[suite]
name = "small"
backend = "inductor"
target = "cpu"
package = "torch"
roots = ["tests"]
path = ["tests"]
signs = ["tests", "version.txt"]
version = "version.txt"
ladder = "LADDER"
preload = PRELOAD

[[map]]
tests = "tests/test_*.py"
stage = "fusion"
checks = "anything"

[[map]]
tests = "tests/test_plain.py::TestPlain::test_z*"
stage = "cache"
checks = "the last one"

[[map]]
tests = "tests/test_gpu.py"
stage = "codegen"
checks = "what needs a GPU"
needs = "gpu"
"""


class Small:
    """The small project: its checkout, its map, and a way to run its tests for real."""

    def __init__(self, folder: Path) -> None:
        self._open(folder)
        for name, text in FILES.items():
            self.write(name, text)
        (self.maps / "expected").mkdir(parents=True)
        self.write_map()

    def _open(self, folder: Path) -> None:
        self.folder, self.root, self.maps = folder, folder / "checkout", folder / "maps"

    @classmethod
    def opened(cls, folder: Path) -> Small:
        """One that was made before, in another process."""
        small = cls.__new__(cls)
        small._open(folder)
        return small

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def write_map(self, text: str = MAP, ladder: str = "", preload: tuple[str, ...] = ()) -> None:
        table = f'{{ "" = {json.dumps(preload)} }}' if preload else "{}"
        filled = text.replace("LADDER", ladder).replace("PRELOAD", table)
        (self.maps / "small.toml").write_text(filled)

    def expect(self, text: str) -> None:
        (self.maps / "expected" / "small.toml").write_text(text)

    @property
    def checkout(self) -> Checkout:
        return open_checkout(self.root, stage_map.load("small", folder=self.maps).suite)

    def run(
        self,
        files: list[str],
        *,
        version: str = "1.0",
        path: Path | None = None,
        resume: bool = False,
        workers: int = 1,
        **options: Any,
    ) -> dict[str, Any]:
        """Run test files through the runner; give the lines of the record by test."""
        mapped = stage_map.load("small", self.checkout.version, self.maps)
        python = interpreter(version)
        results = Results(mapped, self.checkout, python, self.maps)
        options = {"timeout": 10.0, **options}
        folder = self.folder / "state" / "run"
        runner = Runner(mapped, self.checkout, python, Options(**options), folder, results.is_expected)
        writer = Writer(path or self.folder / "record.jsonl", results.header(), resume=resume)
        done = {cell.split("/", 3)[3].removeprefix("upstream:") for cell in writer.done}

        def report(outcome: Any) -> None:
            for line in results.lines(outcome):
                writer.add(json.loads(json.dumps(line)))

        runner.run(files, {file: {test for test in done if test.startswith(file)} for file in files}, report, workers)
        writer.close()
        cells = read(writer.path).cells
        return {cell.split("/", 3)[3].removeprefix("upstream:"): line for cell, line in cells.items()}


def interpreter(version: str) -> Interpreter:
    """This interpreter, as one with a torch of some version: nothing of the small project imports torch."""
    facts = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": "Linux",
        "torch": version,
        "gpus": 0,
        "gpu": None,
    }
    return Interpreter(Path(sys.executable), {**facts, "packages": {"torch": version, "pytest": "9"}})
