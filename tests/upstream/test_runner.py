"""Real test files through real processes: what passes, fails, crashes, hangs, and what is not run at all."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from small_project import Small

from conformance.revision import commit

PLAIN = "tests/test_plain.py"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What became of every test. Its processes are forks, as those of the real suites; other tests start new ones."""
    small = Small(tmp_path_factory.mktemp("small"))
    small.write_map(preload=("unittest",))
    files = [
        "tests/test_plain.py",
        "tests/test_functions.py",
        "tests/test_guarded.py",
        "tests/test_gpu.py",
        "tests/test_skipped.py",
    ]
    return small.run(files)


EXPECTED = {
    "a_passes": ("pass", ""),
    "b_fails": ("fail", "AssertionError: 1 != 2"),
    "c_crashes": ("error", "killed by SIGSEGV: string_at in __init__.py"),
    "d_hangs": ("timeout", "did not end in time: test_d_hangs in test_plain.py"),
    "e_leaves": ("error", "left with exit code 7"),
    "f_skipped": ("unavailable", "skipped by upstream: no such thing here"),
    "g_known": ("xfail", "upstream expects it to fail"),
    "h_mended": ("xpass", "upstream expects it to fail, and it passes: Failed: Unexpected success"),
    "i_subtests": ("fail", "AssertionError: 1 == 1"),
    "j_package": ("unavailable", "needs the package no_such_package"),
    "z_last": ("pass", ""),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_end_of_a_test_has_its_verdict_and_reason(lines: dict[str, dict[str, object]], name: str) -> None:
    line = lines[f"{PLAIN}::TestPlain::test_{name}"]
    assert (line["verdict"], line["reason"]) == EXPECTED[name]


def test_a_crash_and_a_hang_cost_one_test_each(lines: dict[str, dict[str, object]]) -> None:
    ended = [test for test in lines if test.startswith(f"{PLAIN}::TestPlain")]
    assert len(ended) == 12


def test_the_cell_has_the_stage_of_the_map_and_the_whole_name(lines: dict[str, dict[str, object]]) -> None:
    assert (
        lines[f"{PLAIN}::TestPlain::test_z_last"]["cell"]
        == f"cache/inductor/cpu/upstream:{PLAIN}::TestPlain::test_z_last"
    )
    assert lines["tests/test_functions.py::test_parameter[a/b]"]["cell"].startswith(
        "fusion/inductor/cpu/upstream:tests/test_functions"
    )
    assert lines["tests/test_functions.py::test_parameter[c::d]"]["verdict"] == "pass"


def test_what_upstream_would_not_run_here_is_not_run(lines: dict[str, dict[str, object]]) -> None:
    guarded = lines["tests/test_guarded.py::test_only_on_a_gpu"]
    assert guarded["verdict"] == "unavailable"
    assert guarded["reason"] == "upstream runs this file only if HAS_GPU, which does not hold here"
    needs = lines["tests/test_gpu.py::test_gpu"]
    assert (needs["verdict"], needs["reason"]) == ("unavailable", "needs a GPU; this machine has none")


def test_a_file_that_skips_itself_is_one_line(lines: dict[str, dict[str, object]]) -> None:
    line = lines["tests/test_skipped.py::(collection)"]
    assert (line["verdict"], line["reason"]) == ("unavailable", "skipped by upstream: not on this system")


def test_a_file_that_cannot_be_imported(small: Small) -> None:
    small.write("tests/test_moved.py", "from unittest._no_such import private_name\nimport torch\n")
    small.write(
        "tests/test_attribute.py",
        "import unittest\ndef test_it(): raise AttributeError(\"module 'torch._inductor' has no attribute 'old'\")\n",
    )
    small.write(
        "tests/test_public.py",
        "def test_it(): raise AttributeError(\"module 'torch.export' has no attribute 'old'\")\n",
    )
    files = ["tests/test_attribute.py", "tests/test_public.py"]
    other = small.run(files, version="2.0", path=small.folder / "other.jsonl", rungs=False)
    assert other["tests/test_attribute.py::test_it"]["verdict"] == "unavailable"
    assert other["tests/test_attribute.py::test_it"]["observation"] == {
        "cause": "private_name",
        "name": "torch._inductor.old",
    }
    assert other["tests/test_public.py::test_it"]["verdict"] == "fail"
    assert other["tests/test_public.py::test_it"]["observation"]["cause"] == "public_name"
    same = small.run(files[:1], version="1.0", path=small.folder / "same.jsonl", rungs=False)
    assert same["tests/test_attribute.py::test_it"]["verdict"] == "fail", (
        "in its own version a missing name is a failure"
    )


def test_a_private_attribute_that_the_test_asks_for(small: Small) -> None:
    """An object of the compiler without the attribute: the test is of another version. Not so where the compiler asks."""
    installed = small.folder / "site-packages" / "torch"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("class Graph: pass\ndef work(): return Graph().lost\n")
    tests = "import sys\nsys.path.insert(0, {path!r})\nimport torch\n"
    tests += "def test_asks(): torch.Graph()._old\ndef test_compiler_asks(): torch.work()\n"
    small.write("tests/test_asks.py", tests.format(path=str(installed.parent)))
    found = small.run(["tests/test_asks.py"], version="2.0", rungs=False)
    assert found["tests/test_asks.py::test_asks"]["observation"] == {
        "cause": "private_name",
        "name": "torch.Graph._old",
    }
    assert found["tests/test_asks.py::test_compiler_asks"]["observation"]["cause"] == "exception"


def test_a_crash_while_importing_ends_the_file_and_not_the_run(small: Small) -> None:
    small.write("tests/test_dies.py", "import os\nos._exit(9)\n")
    found = small.run(["tests/test_dies.py", "tests/test_functions.py"])
    assert found["tests/test_dies.py::(collection)"]["verdict"] == "error"
    assert "left with exit code 9" in found["tests/test_dies.py::(collection)"]["reason"]
    assert found["tests/test_functions.py::(collection)"]["verdict"] == "pass"


def test_a_resumed_run_runs_only_what_is_left(small: Small) -> None:
    small.write(
        "tests/test_counts.py",
        "import pathlib\n"
        + "".join(
            f"def test_{n}(): pathlib.Path({str(small.folder / 'ran')!r}).open('a').write('{n}')\n" for n in range(4)
        ),
    )
    path = small.folder / "r.jsonl"
    small.run(["tests/test_counts.py"], path=path)
    kept = [line for line in path.read_text().splitlines() if "test_2" not in line and "(collection)" not in line]
    path.write_text("\n".join(kept) + "\n" + '{"cell": "fusion/inductor/cpu/upstream:tests/test_cou')
    again = small.run(["tests/test_counts.py"], path=path, resume=True)
    assert (small.folder / "ran").read_text() == "01232"
    assert {line["verdict"] for line in again.values()} == {"pass"} and len(again) == 5
    assert json.loads(path.read_text().splitlines()[0])["commit"] == commit()


MEET = """
import pathlib, time

def test_meets():
    here, there = (pathlib.Path("{folder}") / name for name in {names})
    here.touch()
    end = time.time() + 60
    while not there.exists() and time.time() < end:
        time.sleep(0.05)
    assert there.exists()
"""


def test_two_files_run_at_once(small: Small) -> None:
    """Each waits for the other: one after the other, both would fail."""
    small.write("tests/test_one.py", MEET.format(folder=small.folder, names=("one", "two")))
    small.write("tests/test_two.py", MEET.format(folder=small.folder, names=("two", "one")))
    found = small.run(["tests/test_one.py", "tests/test_two.py"], workers=2, timeout=90.0)
    assert {line["verdict"] for line in found.values()} == {"pass"}


def test_nothing_is_written_into_the_checkout(small: Small) -> None:
    before = sorted(path for path in small.root.rglob("*"))
    small.run(["tests/test_functions.py"])
    assert sorted(path for path in small.root.rglob("*")) == before


LONG = """
import os, pathlib, time

def test_it():
    pathlib.Path("{pid}").write_text(str(os.getpid()))
    time.sleep(300)
"""
RUN = """
import pathlib, sys
sys.path[:0] = sys.argv[1:3]
from small_project import Small
Small.opened(pathlib.Path(sys.argv[3])).run(["tests/test_long.py"], timeout=400.0)
"""


@pytest.mark.parametrize("preload", [(), ("unittest",)], ids=["new interpreter", "fork"])
def test_a_killed_run_leaves_no_test_running(small: Small, tmp_path: Path, preload: tuple[str, ...]) -> None:
    small.write_map(preload=preload)
    small.write("tests/test_long.py", LONG.format(pid=tmp_path / "pid"))
    here = Path(__file__).resolve().parent
    parent = subprocess.Popen([sys.executable, "-c", RUN, str(here), str(here.parents[1]), str(small.folder)])
    assert until(lambda: (tmp_path / "pid").exists())
    child = int((tmp_path / "pid").read_text())
    parent.kill()
    parent.wait()
    assert until(lambda: not alive(child)), "the child did not notice that its parent is gone"


def until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


def alive(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_expected_failures_are_strict_both_ways(small: Small) -> None:
    small.expect(
        '[[expect]]\ncell = "fusion/*/*/upstream:tests/test_plain.py::TestPlain::test_b_fails"\nverdict = "fail"\n'
        'when = "torch<2"\nurl = "https://example.org/1"\nwhy = "one is not two"\n'
        '[[expect]]\ncell = "fusion/*/*/upstream:tests/test_plain.py::TestPlain::test_a_passes"\nverdict = "fail"\n'
        'url = "https://example.org/2"\nwhy = "it should fail"\n'
        '[[expect]]\ncell = "*/*/*/upstream:tests/test_plain.py::TestPlain::test_no_such"\nverdict = "fail"\n'
        'url = "https://example.org/3"\nwhy = "there is none"\n'
    )
    found = small.run([PLAIN], keyword="test_a or test_b")
    known = found[f"{PLAIN}::TestPlain::test_b_fails"]
    assert (known["verdict"], known["reason"], known["url"]) == ("xfail", "one is not two", "https://example.org/1")
    assert found[f"{PLAIN}::TestPlain::test_a_passes"]["verdict"] == "xpass"
    later = small.run([PLAIN], version="2.1", keyword="test_b", path=small.folder / "later.jsonl")
    assert later[f"{PLAIN}::TestPlain::test_b_fails"]["verdict"] == "fail", "the condition torch<2 does not hold"


def test_a_record_of_upstream_tests_is_an_ordinary_record(lines: dict[str, dict[str, object]], tmp_path: Path) -> None:
    from conformance.report.load import load
    from conformance.report.matrix import combine

    path = tmp_path / "run.jsonl"
    header = {
        "schema": "conformance/1",
        "suite": "x",
        "env": {"torch": "1.0", "backends": {"inductor": {"torch": "1.0"}}},
        "started": "2026",
    }
    path.write_text("\n".join(json.dumps(value) for value in (header, *lines.values())) + "\n")
    made = combine(load([path]))
    assert not made.problems
    assert len(made.entries) == len(lines)
