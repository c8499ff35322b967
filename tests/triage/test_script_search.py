"""The search for stage and repro of a script, with a ladder that only tells the script at which rung it runs: what
hangs, what a signal ends, and what fails at a rung but not as a whole. No compiler is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.stage import Stage
from conformance.triage import answer as said
from conformance.triage import script_search
from conformance.triage.ablation import Ablation, Step
from conformance.triage.adapter import Adapter
from conformance.triage.answer import Answer
from conformance.triage.culprit import Culprit
from conformance.triage.ending import Ending
from conformance.triage.hold import Hold, Journal
from conformance.triage.ladder import Climb, Rung
from conformance.triage.runs import Runs, plain_ending
from conformance.triage.script_search import Question, Search, statements_around
from conformance.triage.subject import Script, Subject, script

HEAD = "import os, sys, time\nrung = os.environ.get('RUNG', 'alone')\ncured = 'CURED' in os.environ\n"


class Told(Adapter):
    """Its rungs are named in the environment of the script."""

    rungs = (
        Rung("eager", None, ""),
        Rung("captured", Stage.CAPTURE, ""),
        Rung("passed", Stage.POSTGRAD, ""),
        Rung("whole", Stage.CODEGEN, "", costly=True),
    )

    @contextmanager
    def hold(self, held: Hold, journal: Journal) -> Iterator[None]:
        os.environ["RUNG"] = held.rung
        yield

    def stage(self, runs: Runs, subject: Subject, climb: Climb) -> tuple[Stage | None, str]:
        return (climb.first_failing.stage if climb.first_failing else None), ""

    def culprit(self, runs: Runs, subject: Subject, climb: Climb, stage: Stage) -> Culprit:
        return Culprit("capture", "the line", "")

    def cures(self, stage: Stage, culprit: object) -> list[tuple[str, ...]]:
        return [('os.environ["CURED"] = "1"',)]


def searched(
    tmp_path: Path, text: str, limit: float = 60.0, arguments: tuple[str, ...] = (), **how: Any
) -> tuple[Answer, Runs]:
    file = tmp_path / "given.py"
    file.write_text(HEAD + text)
    subject: Script = script(file, arguments)
    adapter = how.pop("adapter", Told())
    runs = Runs(adapter.hold, limit=limit)
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def plain() -> Ending:
        return plain_ending(file, arguments, {}, scratch, limit)

    try:
        shrink = how.pop("shrink", False)
        search = Search(subject, adapter, runs, {"torch": "2.15.0"}, plain=plain, **how)
        return search.run(tmp_path / "out", shrink), runs
    finally:
        runs.close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))


def test_capture_is_found_without_a_run_of_the_whole_program(tmp_path: Path) -> None:
    found, runs = searched(tmp_path, "sys.exit(rung != 'eager' and not cured)\n")
    assert (found.verdict, found.stage) == (said.FOUND, Stage.CAPTURE)
    assert found.repro is not None and runs.counted == 5  # three rungs, the repro alone, the repro cured


def test_what_fails_at_the_rungs_and_is_right_as_a_whole_is_no_alarm(tmp_path: Path) -> None:
    found, _ = searched(tmp_path, "sys.exit(rung in ('captured', 'passed'))\n")
    assert (found.verdict, found.repro) == (said.RIGHT, None)


def test_a_signal_names_its_line(tmp_path: Path) -> None:
    found, _ = searched(tmp_path, "if rung != 'eager' and not cured:\n    os.abort()\n")
    assert found.detail == "it dies of signal 6 (SIGABRT) at line 5"
    assert (found.stage, found.kind) == (Stage.CAPTURE, "crash")
    assert found.repro is not None, found.unwritten


def test_a_hang_names_its_line_and_the_other_runs_wait_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_search, "IDLE", 0.5)
    monkeypatch.setattr("conformance.repro.GUARD_SECONDS", 1)
    found, runs = searched(tmp_path, "if rung != 'eager' and not cured:\n    time.sleep(100)\n", limit=2.0)
    assert found.detail == "it does not end, it stays at line 5"
    assert (found.stage, found.kind) == (Stage.CAPTURE, "timeout")
    assert runs.idle is not None and runs.idle < runs.limit
    assert found.repro is not None, found.unwritten


def test_a_repro_has_the_arguments_of_its_script(tmp_path: Path) -> None:
    text = "sys.exit(sys.argv[1:] == ['3'] and rung != 'eager' and not cured)\n"
    found, _ = searched(tmp_path, text, arguments=("3",))
    assert found.repro is not None, found.unwritten


class Large(Told):
    """What it captures is large."""

    @contextmanager
    def hold(self, held: Hold, journal: Journal) -> Iterator[None]:
        journal.write("graph", nodes=script_search.LARGE + 1)
        with super().hold(held, journal):
            yield


def test_a_large_right_program_is_compiled_once_alone(tmp_path: Path) -> None:
    """All other rungs after capture, which only a failure needs, are left out."""
    small, few = searched(tmp_path, "sys.exit(0)\n", adapter=Large())
    assert small.verdict == said.RIGHT and {hold.rung for _, hold in few._known} == {"eager", "captured"}


def test_a_large_program_that_fails_only_alone_is_flaky(tmp_path: Path) -> None:
    found, _ = searched(tmp_path, "sys.exit(rung == 'alone')\n", adapter=Large())
    assert found.verdict == said.FLAKY


def test_after_its_time_triage_says_what_it_knows(tmp_path: Path) -> None:
    """The stage is named and the repro verified; nothing is made smaller, and no step left out."""
    text = "unread = 1\nsys.exit(rung != 'eager' and not cured)\n"
    found, runs = searched(tmp_path, text, shrink=True, within=0.0)
    assert (found.stage, runs.counted) == (Stage.CAPTURE, 5)
    assert found.repro is not None and "unread" in found.repro.read_text()
    assert "the search for the culprit was stopped: its time was used up" in found.notes
    ablation = Ablation(runs, script(tmp_path / "given.py"), Hold("captured"))
    assert ablation.single([Step("pass", "pass 0", "one")]) is None and ablation.tried == 0


def test_a_smaller_script_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its counter a loop is endless: that costs the seconds of `QUICK`, not those that a run may take."""
    monkeypatch.setattr(script_search, "QUICK", 0.5)
    (tmp_path / "given.py").write_text("n = 0\nwhile n < 3:\n    n = n + 1\nraise SystemExit(1)\n")
    seen = {"eager": Ending(0, seconds=0.1), "captured": Ending(1, seconds=0.1)}
    known = Answer("given", said.FOUND, Ending(1), Stage.CAPTURE, climb=Climb(Ending(1), Told.rungs, seen))
    runs = Runs(Told().hold, limit=600.0)
    try:
        question = Question(runs, script(tmp_path / "given.py"), known, tmp_path)
        assert question.holds(["n = 0\nwhile n < 3:\n    pass\n"]) == [False]
        assert [ending.kind for ending in runs._known.values()] == ["hang"]
    finally:
        runs.close()


def test_the_statements_of_a_function_are_named_by_their_first_lines() -> None:
    text = (
        "def f(x):\n    seen.append(x)\n    for y in x:\n        y = y + 1\n    return x\n\ndef g(x):\n    return x\n"
    )
    assert statements_around(text, {4}) == ["seen.append(x)", "for y in x:", "return x"]
    assert statements_around(text, {99}) == []
    assert statements_around("class C:\n    def f(self, x):\n        C.seen.append(x)\n", set()) == ["C.seen.append(x)"]
