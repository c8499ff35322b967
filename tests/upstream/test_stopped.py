"""A test that is stopped where a GPU must go on: what it had shown of its own stage by then, and what not."""

from __future__ import annotations

from typing import Any

import pytest
from small_project import MAP, Small

from conformance.record import read

TESTS = """
import unittest

class Stopped(BaseException):
    facts = {"engines": ENGINES, "engine_bytes": 9000}

def run_engine(): raise Stopped("running an engine needs a GPU")

def checked(number):
    assert number == 1
    run_engine()

class TestStops(unittest.TestCase):
    def test_asserts_after(self):
        run_engine()
        self.assertEqual(1, 1)

    def test_asserts_before(self):
        def unused(): assert False
        self.assertEqual(1, 1)
        assert [
            1,
        ]
        run_engine()
        self.assertEqual(1, 1)

    @unittest.skipIf(False, "a decorator stands before def")
    def test_asserts_in_a_helper(self): checked(1)
"""


def lines(small: Small, stage: str, engines: int) -> dict[str, Any]:
    """What a file of stopping tests gives, by the words of the cell that differ."""
    small.write("tests/test_stops.py", TESTS.replace("ENGINES", str(engines)))
    small.write_map(MAP + f'[[map]]\ntests = "tests/test_stops.py"\nstage = "{stage}"\nchecks = "x"\n')
    path = small.folder / f"{stage}.jsonl"
    small.run(["tests/test_stops.py"], path=path)
    cells = read(path).cells
    return {
        f"{cell.partition('/')[0]} {cell.rpartition('::test_')[2]}": (line["verdict"], line["reason"])
        for cell, line in cells.items()
        if "::test_" in cell
    }


def test_a_lowering_test_passes_only_with_what_it_asserted(small: Small) -> None:
    found = lines(small, "postgrad", engines=1)
    engine = "engines: 1 built for real, 9,000 bytes"
    stop = "running an engine needs a GPU"
    assert found == {
        "postgrad asserts_after": ("unavailable", f"{stop}, and the test asserts nothing before that"),
        "postgrad asserts_before": ("pass", f"{engine}; 2 assertions of the test held; then {stop}"),
        "runtime asserts_before": ("unavailable", stop),
        "postgrad asserts_in_a_helper": ("pass", f"{engine}; 1 assertion of the test held; then {stop}"),
        "runtime asserts_in_a_helper": ("unavailable", stop),
    }


@pytest.mark.parametrize(("engines", "verdict"), [(1, "pass"), (0, "unavailable")])
def test_a_converter_passes_with_an_engine(small: Small, engines: int, verdict: str) -> None:
    found = lines(small, "codegen", engines)
    assert {one for name, (one, _) in found.items() if name.startswith("codegen")} == {verdict}
    assert ("runtime asserts_after" in found) == bool(engines)


def test_a_test_of_the_runtime_is_unavailable_whatever_it_asserted(small: Small) -> None:
    found = lines(small, "runtime", engines=1)
    assert {verdict for verdict, _ in found.values()} == {"unavailable"} and len(found) == 3
