"""A fix of a small history, taken out of the torch that is installed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.mutants.reach import Block
from conformance.mutants.survey import Survey, Surveyed, bits, survey
from conformance.processes import Death
from conformance.reverts import choice, expected, proof, revert, scoring
from conformance.reverts.bug import CANDIDATE, LEFT_OUT, NAMED, NOT_APPLIED, NOT_PROVEN, PROVEN, Bug, Bugs
from conformance.reverts.cells import died, differences
from conformance.reverts.commands import reverts
from conformance.reverts.history import Named, fixes
from conformance.reverts.summary import lines

FILE = "torch/utils/_sympy/singleton_int.py"
RIGHT, WRONG = "coeff=self._coeff * other", "coeff=self._coeff + other"
TEST = """
import unittest
from torch.utils._sympy.singleton_int import SingletonInt

class TinyTest(unittest.TestCase):
    def test_old(self):
        self.assertTrue(SingletonInt(1))
"""
NEW_TEST = """
    def test_times(self):
        self.assertEqual((SingletonInt(1, coeff=3) * 5)._coeff, {})
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def installed() -> str:
    text = (revert.installed_root() / FILE).read_text(encoding="utf-8")
    assert RIGHT in text
    return text


class History:
    """A git repository, a commit at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q")

    def git(self, *words: str) -> str:
        who = {f"GIT_{role}_{what}": "t@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=os.environ | who, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, title: str, files: dict[str, str], pull: int = 0) -> str:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        body = f"Pull Request resolved: https://github.com/pytorch/pytorch/pull/{pull}" if pull else ""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", title, "-m", body)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def history(tmp_path: Path, installed: str) -> History:
    """Wrong first, then mended: the second commit is as installed."""
    made = History(tmp_path / "checkout")
    made.commit("Begin", {FILE: installed.replace(RIGHT, WRONG), "test/test_tiny.py": TEST})
    made.commit("Fix the product (#999991)", {FILE: installed, "test/test_tiny.py": TEST + NEW_TEST.format(15)}, 999991)
    return made


def candidate(history: History) -> Bug:
    (found,) = [bug for bug in fixes(history.folder, "2000-01-01") if bug.outcome == CANDIDATE]
    return found


def in_interpreter(overlay: Path | None, code: str) -> str:
    env = revert.with_overlay(overlay, os.environ)
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout


SAY = f"""
import inspect, {FILE[:-3].replace("/", ".")} as m
print(m.__file__, m.SingletonInt.__rmul__.__code__.co_filename, {WRONG!r} in inspect.getsource(m.SingletonInt))
"""


# ------------------------------------------------------------------------------------------------------ overlays


def test_an_overlay_changes_the_code_and_nothing_on_disk(home: Path, history: History, installed: str) -> None:
    bug, overlay = candidate(history), home / "overlay"
    root = revert.installed_root()
    assert revert.revert(history.folder, bug.commit, bug.files, root, overlay) == ""
    assert revert.changed_lines(root, overlay)[FILE]
    path = str(root / FILE)
    assert in_interpreter(None, SAY).split() == [path, path, "False"]
    assert in_interpreter(overlay, SAY).split() == [path, path, "True"]
    assert (root / FILE).read_text(encoding="utf-8") == installed


def test_processes_that_are_started_have_it_too(home: Path, history: History) -> None:
    bug, overlay = candidate(history), home / "overlay"
    revert.revert(history.folder, bug.commit, bug.files, revert.installed_root(), overlay)
    code = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {SAY!r}], capture_output=True, text=True).stdout)"
    assert in_interpreter(overlay, code).split()[-1] == "True"


def test_what_does_not_apply_says_so(home: Path, history: History) -> None:
    """Upstream went on: the installed file is another one."""
    commit = history.commit("Fix what is not there (#3)", {FILE: "nothing = 1\nof = 2\nthis = 3\n"}, 3)
    said = revert.revert(history.folder, commit, [FILE], revert.installed_root(), home / "overlay")
    assert "FAILED" in said


def test_an_added_file_cannot_be_taken_out(home: Path, history: History) -> None:
    commit = history.commit("Fix by adding (#4)", {"torch/_dynamo/added.py": "one = 1\n"}, 4)
    said = revert.revert(history.folder, commit, ["torch/_dynamo/added.py"], revert.installed_root(), home / "overlay")
    assert "added" in said


def test_without_an_overlay_the_environment_has_none(tmp_path: Path) -> None:
    with_one = revert.with_overlay(tmp_path, {"PYTHONPATH": "/a"})
    assert with_one[revert.VARIABLE] == str(tmp_path) and with_one["PYTHONPATH"].endswith(":/a")
    assert revert.with_overlay(None, with_one) == {"PYTHONPATH": "/a"}


# ------------------------------------------------------------------------------------------------------ proofs


def test_a_bug_is_proven_by_the_test_of_its_fix(home: Path, history: History) -> None:
    said = proof.Prover(history.folder).prove(candidate(history))
    assert said["outcome"] == PROVEN, said
    assert said["proof"] == ["test/test_tiny.py::TinyTest::test_times"]
    assert "8 != 15" in str(said["reason"])


@pytest.mark.parametrize(
    "test, why",
    [
        (NEW_TEST.format("(SingletonInt(1, coeff=3) * 5)._coeff"), "pass without it, too"),
        (NEW_TEST.format("0"), "fail with the fix, too"),
        ("\n    # a comment\n", "no test method"),
        ('\n    @unittest.skip("needs a GPU")\n    def test_gpu(self): ...\n', "are skipped: Skipped: needs a GPU"),
        ("\nimport nowhere_to_be_found\n\ndef test_it(): ...\n", "cannot be imported"),
    ],
)
def test_what_proves_nothing_says_why(home: Path, history: History, installed: str, test: str, why: str) -> None:
    history.commit("Begin again", {FILE: installed.replace(RIGHT, WRONG), "test/test_tiny.py": TEST})
    history.commit("Fix the product (#5)", {FILE: installed, "test/test_tiny.py": TEST + test}, 5)
    bug = next(bug for bug in fixes(history.folder, "2000-01-01") if bug.pull == 5)
    said = proof.Prover(history.folder).prove(bug)
    assert said["outcome"] == NOT_PROVEN and why in str(said["reason"])


@pytest.mark.parametrize(
    "line, asks",
    [
        ("AssertionError: 8 != 15", False),
        ("ImportError: cannot import name 'new' from 'torch._dynamo'", True),
        ("TypeError: f() missing 2 required positional arguments: 'a' and 'b'", True),
        ("AttributeError: 'Graph' object has no attribute 'brought'", True),
        ("AttributeError: 'NoneType' object has no attribute 'meta'", False),
    ],
)
def test_a_name_that_is_gone_is_no_proof(line: str, asks: bool) -> None:
    assert proof.asks_for_name(line, {"brought"}) is asks


def test_methods_that_were_added_or_changed() -> None:
    before = "class A:\n    def test_a(self): f(1)\n    def test_b(self): f(2)\n    def helper(self): ...\n"
    after = before.replace("f(2)", "f(3)  # other").replace("helper", "test_c").replace("f(1)", "f( 1 )")
    assert proof.changed_methods(before, after) == ["test_b", "test_c"]


# ------------------------------------------------------------------------------------------------------ candidates


@pytest.mark.parametrize(
    "title, files, pull, outcome, why",
    [
        ("Fix a crash (#1)", {FILE: "a = 1", "test/test_b.py": "c"}, 999990, CANDIDATE, ""),
        ("Fix a crash", {FILE: "a = 1", "test/test_b.py": "c"}, 0, LEFT_OUT, "not merged"),
        ("Add an option (#1)", {FILE: "a = 1", "test/test_b.py": "c"}, 999990, LEFT_OUT, "title"),
        ("Fix typing of a crash (#1)", {FILE: "a = 1", "test/test_b.py": "c"}, 999990, LEFT_OUT, "types"),
        ("[ROCm] Fix a crash (#1)", {FILE: "a = 1", "test/test_b.py": "c"}, 999990, LEFT_OUT, "another device"),
        ("Fix a crash (#1)", {FILE: "a = 1"}, 999990, LEFT_OUT, "no test"),
        ("Fix a crash (#1)", {FILE: "a = 1", "test/test_b.py": "c", "aten/a.cpp": "x"}, 999990, LEFT_OUT, "more than"),
        ("Fix a crash (#1)", {FILE: "a = 1", "test/test_b.py": "c"}, 198094, NAMED, "#198094"),
    ],
)
def test_the_rules(history: History, title: str, files: dict[str, str], pull: int, outcome: str, why: str) -> None:
    commit = history.commit(title, files, pull)
    (bug,) = [bug for bug in fixes(history.folder, "2000-01-01") if bug.commit == commit]
    assert (bug.outcome, why in bug.reason) == (outcome, True), bug.reason


def test_of_what_was_merged_twice_the_last_counts(history: History, installed: str) -> None:
    first = history.commit("Fix a crash (#999980)", {FILE: "a = 1", "test/test_b.py": "1"}, 999980)
    history.commit("Revert it", {FILE: "a = 2"})
    last = history.commit("Fix a crash (#999980)", {FILE: "a = 3", "test/test_b.py": "2"}, 999980)
    found = {bug.commit: bug for bug in fixes(history.folder, "2000-01-01")}
    assert found[last].outcome == CANDIDATE and found[first].reason == "was merged again later"


def test_what_the_library_names() -> None:
    named = Named(["see pytorch#190886 and https://github.com/pytorch/pytorch/pull/180001", "commit 0123abcd9"])
    bug = Bug("0123abcd9" + "0" * 31, "t", "2026-01-01")
    assert named.of(bug) == "0123abcd9"
    assert named.of(Bug("f" * 40, "t", "d", pull=180001)) == "#180001"
    assert named.of(Bug("f" * 40, "t", "d", issues=[190886])) == "#190886"
    assert not named.of(Bug("f" * 40, "t", "d", pull=1))


def test_the_commands_go_on_where_they_ended(home: Path, history: History) -> None:
    record = home / "record.jsonl"
    run = lambda *words: CliRunner().invoke(reverts, [*words], standalone_mode=False, catch_exceptions=False).output
    assert "1 candidate" in run("candidates", str(history.folder), str(record), "--since", "2000-01-01")
    assert "proven" in run("prove", str(history.folder), str(record))
    assert run("prove", str(history.folder), str(record)) == ""
    run("candidates", str(history.folder), str(record), "--since", "2000-01-01")
    assert [bug.outcome for bug in Bugs(record) if bug.pull] == [PROVEN]
    assert "1 proven" in run("show", str(record), "--publish", str(home / "published.jsonl"))
    first, *others = (home / "published.jsonl").read_text().splitlines()
    assert json.loads(first)["left_out"] == {"not merged upstream": 1}
    assert [json.loads(line)["outcome"] for line in others] == [PROVEN]
    assert str(home) not in "".join(others)


# ------------------------------------------------------------------------------------------------------ choices

BLOCKS = [
    Block("_dynamo/a.py", "f", 10),
    Block("_dynamo/a.py", "f", 14),
    Block("_dynamo/a.py", "g", 30),
    Block("_inductor/b.py", "h", 5),
]


def surveyed(name: str, reached: set[int], seconds: float = 1.0, right: bool = True) -> Surveyed:
    return Surveyed(name, "inductor", "cpu", "2", len(BLOCKS), bits(reached, len(BLOCKS)), seconds, right)


@pytest.mark.parametrize(
    "first, last, blocks, function",
    [(12, 12, {0}, {0, 1}), (14, 15, {1}, {0, 1}), (13, 15, {0, 1}, {0, 1}), (31, 40, {2}, {2}), (3, 3, set(), set())],
)
def test_blocks_of_changed_lines(first: int, last: int, blocks: set[int], function: set[int]) -> None:
    found = choice.places({"torch/_dynamo/a.py": [[first, last]]}, BLOCKS)
    assert found == (blocks, function, {0, 1, 2})


def test_what_reaches_the_lines_comes_first_then_families_in_turn() -> None:
    known = [
        surveyed("one.slow", {0}, 9),
        surveyed("one.quick", {0}, 1),
        surveyed("two.quick", {0}, 2),
        surveyed("two.wrong", {0}, 0.5, right=False),
        surveyed("three.function", {1}, 0.1),
        surveyed("four.file", {2}, 0.1),
        surveyed("five.elsewhere", {3}, 0.1),
    ]
    changed = {"torch/_dynamo/a.py": [[12, 12]]}
    names = choice.choose(changed, BLOCKS, known)
    assert names == ["one.quick", "two.quick", "two.wrong", "one.slow", "three.function", "four.file"]
    assert choice.choose(changed, BLOCKS, known, most=1) == ["one.quick"]
    assert choice.choose({"torch/_ops.py": [[1, 1]]}, BLOCKS, known, most=1) == ["five.elsewhere"]


# ------------------------------------------------------------------------------------------------------ scores


def cell(verdict: str, *kinds: str, digest: str = "d") -> dict[str, Any]:
    found = [{"kind": kind, "check": "C1", "detail": ""} for kind in kinds]
    return {"verdict": verdict, "findings": found, "micrograph": digest}


@pytest.mark.parametrize(
    "before, after, how",
    [
        (cell("pass"), cell("fail", "wrong_result"), "wrong_result"),
        (cell("pass"), cell("fallback"), "fallback"),
        (cell("xfail", "crash"), cell("fail", "crash", "wrong_result"), "wrong_result"),
        (cell("xfail", "crash"), cell("xfail", "crash"), ""),
        (cell("xfail", "crash"), cell("pass"), ""),
        (cell("blocked"), cell("fail", "crash"), "crash"),
        (cell("pass"), cell("blocked"), ""),
        (cell("pass"), cell("fail", "crash", digest="another"), ""),
    ],
)
def test_a_cell_that_differs(before: dict[str, Any], after: dict[str, Any], how: str) -> None:
    name = "codegen/inductor/cpu/a.b"
    assert differences({name: before}, {name: after}) == ({name: how} if how else {})


def test_the_stage_is_that_of_most_micrographs() -> None:
    names = [
        "capture/inductor/cpu/a.a",
        "codegen/inductor/cpu/a.a",
        "codegen/inductor/cpu/a.b",
        "codegen/inductor/cpu/a.c",
    ]
    plain = {name: cell("pass") for name in names}
    found = differences(plain, {name: cell("fail", "crash") for name in names})
    bug = Bug("0" * 40, "t", "d", changed={"torch/_inductor/codegen/cpp.py": [[1, 1]]})
    said = scoring.told(found, bug)
    assert (said["stage"], said["micrograph"], said["right"]) == ("codegen", "a.b", "right")


@pytest.mark.parametrize(
    "stage, files, answer",
    [
        ("capture", ["torch/_dynamo/variables/lists.py"], "right"),
        ("decomposition", ["torch/_dynamo/variables/lists.py"], "near"),
        ("runtime", ["torch/_dynamo/guards.py"], "other"),
        ("fusion", ["torch/_dynamo/guards.py", "torch/_inductor/scheduler.py"], "right"),
        ("fusion", ["torch/_inductor/config.py"], "no stage"),
        ("cache", ["torch/_inductor/codecache.py"], "right"),
    ],
)
def test_the_right_stage(stage: str, files: list[str], answer: str) -> None:
    assert expected.answer(stage, files) == answer


def test_halves_are_counted_apart() -> None:
    shown = Bug("2" + "0" * 39, "seen", "d", outcome=PROVEN, scored=True, shown=True, right="right")
    missed = Bug("4" + "0" * 39, "missed", "d", outcome=PROVEN, scored=True)
    apart = Bug("5" + "0" * 39, "kept apart", "d", outcome=PROVEN, scored=True)
    text = "\n".join(lines([shown, missed, apart, Bug("6" * 40, "t", "d", outcome=NOT_APPLIED)], missed=True))
    assert "| even | 2 | 1 (50 %) | 1 | 0 | 0 |" in text and "| odd | 1 | 0 (0 %) | 0 | 0 | 0 |" in text
    assert "missed" in text and "kept apart" not in text


def test_a_process_that_died_is_a_wrong_cell_at_its_stage() -> None:
    found = died("a.b", "runtime", Death(False, "was ended by SIGSEGV"))
    assert differences({"runtime/inductor/cpu/a.b": cell("pass")}, found) == {"runtime/inductor/cpu/a.b": "crash"}


def test_facts_that_moved_are_told_as_the_diff_tells_them() -> None:
    name = "fusion/inductor/cpu/a.b"
    one, two = ({name: cell("pass") | {"cell": name, "observation": {"kernels": number}}} for number in (1, 2))
    assert scoring.facts_moved(one, two) == ["fusion: more: kernels 1 → 2"]
    assert scoring.facts_moved(one, one) == []


@pytest.mark.slow
@pytest.mark.own_process
def test_the_suite_shows_a_bug_that_is_in_an_overlay(home: Path) -> None:
    """A function of C++ that is another one in an overlay, seen by the micrograph that uses it, and by no other one."""
    file = "torch/_inductor/codegen/cpp.py"
    text = (revert.installed_root() / file).read_text(encoding="utf-8")
    right, scalar = (
        'return f"{a}.tanh()"',
        'return f"std::tanh({x})"',
    )  # loops with vectors, and the ends of loops without
    assert right in text and scalar in text
    wrong = text.replace(right, right.replace("tanh", "sinh")).replace(scalar, scalar.replace("tanh", "sinh"))
    made = History(home / "checkout")
    made.commit("Begin", {file: wrong})
    commit = made.commit("Fix tanh (#6)", {file: text}, 6)
    line = text[: text.index(right)].count("\n") + 1
    bug = Bug(commit, "Fix tanh (#6)", "d", files=[file], changed={file: [[line, line]]})
    known = Survey(home / "survey.jsonl")
    for one in survey(["pointwise.chain", "norm.add_rmsnorm"], "inductor", "cpu", 1):
        assert isinstance(one, Surveyed), one
        known.keep(one)
    said = scoring.Scorer(home / "survey.jsonl", home / "runs").score(bug, made.folder)
    assert (said["shown"], said["micrograph"], said["stage"], said["right"]) == (
        True,
        "pointwise.chain",
        "codegen",
        "right",
    )
    assert said["ran"] == 2 and all("pointwise.chain" in one for one in said["showing"])
