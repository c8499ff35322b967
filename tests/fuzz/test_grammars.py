"""Programs of the grammars: data that is rebuilt, compared with eager, made smaller, and named by its cause."""

from __future__ import annotations

import builtins
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from conformance import paths
from conformance.errors import UsageError
from conformance.fresh import Died
from conformance.fuzz import causes, program_lane, program_report, program_tasks, rungs
from conformance.fuzz.causes import cause_of
from conformance.fuzz.grammar import Grammar, parts
from conformance.fuzz.grammars import GRAMMARS, seeds
from conformance.fuzz.observed import difference, outcome
from conformance.fuzz.program import Program, module_of
from conformance.fuzz.program_finding import ProgramFinding, ProgramFindings, exit_code, write_script
from conformance.fuzz.program_lane import Lane
from conformance.fuzz.workers import Inline
from conformance.processes import Death

GRAMMAR = Grammar(
    name="writes",  # under the name of a grammar of the tables, since findings name it
    text="def f(x):\n    $first\n    return $op\ndef inputs():\n    return (torch.ones(3),)",
    slots={
        "first": {"nothing": "", "double": "x = x * 2"},
        "op": {"x + 1": "x + 1", "x * 3": "x * 3", "x - 1": "x - 1"},
    },
    rungs=("capture",),
    cause=("op",),
)


def program(grammar: str, **choices: str) -> Program:
    rules = GRAMMARS[grammar]
    return Program.of(rules, {**rules.plainest(), **choices})


@pytest.mark.parametrize("name", GRAMMARS)
def test_every_entry_gives_a_program_that_python_accepts(name: str) -> None:
    rules, random = GRAMMARS[name], Random(0)
    plain = rules.plainest()
    assert rules.allowed(plain)
    for slot, table in rules.slots.items():
        for key in random.sample([*table], 30) if slot == "seed" else table:  # each of these is traced
            compile(Program.of(rules, {**plain, slot: key}).source, "program", "exec")
    for _ in range(30):
        drawn = rules.draw(random, lambda slot, key: 1.0)
        assert rules.allowed(drawn) and not rules.problem(drawn)


def test_the_list_of_seeds_names_what_has_a_text() -> None:
    """`python -m conformance.fuzz.grammars.seeds` makes it anew. With another torch a few more or fewer may have one."""
    listed = {*seeds.seeds()}
    assert listed == {*paths.seeds().read_text().split()}
    asked = Random(1).sample([*seeds.library()], 60)
    assert sum(seeds.has_text(name) != (name in listed) for name in asked) <= 2


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_plainest_program_runs_in_eager(name: str) -> None:
    plain = Program.of(GRAMMARS[name], GRAMMARS[name].plainest())
    with rungs.surroundings(), module_of(plain) as module:
        first = outcome(module.play, lambda fn: fn)
    assert first[0] == "value", first


def test_a_program_is_data() -> None:
    one = program("writes", write="add_", view="row")
    assert Program.from_json(one.to_json()) == one
    assert "v.add_(1)" in one.source and "v = a[1]" in one.source


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grammar": "eval"}, "grammar"),
        ({"schema": "other"}, "not a program"),
        ({"choices": {"write": "__import__('os').system('true')"}}, "does not choose"),
        ({"choices": {**GRAMMARS["writes"].plainest(), "write": "__import__('os')"}}, "no entry of the slot write"),
    ],
)
def test_what_is_not_of_the_tables_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Program.from_json({**program("writes").to_json(), **change})


@pytest.mark.parametrize(
    ("want", "got", "what"),
    [
        (lambda: torch.ones(2), lambda: torch.ones(2), None),
        (lambda: torch.ones(2), lambda: 1 / 0, "raises"),
        (lambda: 1 / 0, lambda: torch.ones(2), "accepts"),
        (lambda: 1 / 0, lambda: [][0], None),
        (lambda: (torch.ones(2), 1), lambda: [torch.ones(2), 1], "structure"),
        (lambda: [1, 2], lambda: [1], "structure"),
        (lambda: {"a": 1}, lambda: {"a": 2}, "python"),
        (lambda: (1, True), lambda: (1, 1), "structure"),
        (lambda: {1, 2}, lambda: {2, 3}, "python"),
        (lambda: torch.ones(2), lambda: torch.ones(2).double(), "dtype"),
        (lambda: torch.ones(2), lambda: torch.ones(3), "shape"),
        (lambda: torch.ones(2), lambda: torch.ones(2) + 0.01, "value"),
        (lambda: torch.ones(2).half(), lambda: torch.ones(2).half() + 0.01, None),
        (lambda: torch.tensor([float("nan")]), lambda: torch.tensor([float("nan")]), None),
        (lambda: torch.zeros(1), lambda: -torch.zeros(1), "sign of zero"),
        (lambda: torch.ones(2, 3), lambda: torch.ones(3, 2).t(), "stride"),
        (lambda: torch.ones(1, 3), lambda: torch.ones(3, 1).t(), None),
        (lambda: torch.ones(2), lambda: torch.ones(2, requires_grad=True), "requires_grad"),
    ],
)
def test_what_differs(want: Callable[[], Any], got: Callable[[], Any], what: str | None) -> None:
    found = difference(outcome(lambda _: want(), None), outcome(lambda _: got(), None), signs=True)
    assert (found[0] if found else None) == what


def test_programs_do_not_change_their_surroundings() -> None:
    for place in ("default dtype", "environment", "builtin replaced", "imported inside"):
        rungs.Player().eager(program("world", place=place))
    assert torch.get_default_dtype() == torch.float32
    assert "fuzz_world" not in sys.modules and not hasattr(builtins, "fuzz_v")


def wrong_multiplication(backend: str | None) -> Callable[[Any], Any]:
    """A compiler that is wrong wherever a program multiplies by three."""

    def compile(fn: Any) -> Any:
        if backend is None or 3 not in fn.__code__.co_consts:
            return fn
        return lambda *args: fn(*args) + 1

    return compile


class Answering(Inline):
    """Plays programs in this process; a script exits with `code`."""

    code = 1

    def call(self, function: Callable[..., Any], *args: Any, limit: float = 300.0) -> Any:
        return self.code if function is exit_code else function(*args)


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lane:
    monkeypatch.setitem(GRAMMARS, "writes", GRAMMAR)
    monkeypatch.setattr(rungs, "compiler", wrong_multiplication)
    monkeypatch.setattr(program_lane, "write_script", lambda finding: write_script(finding, tmp_path))
    return Lane(3, grammars=("writes",), workers=Answering(), findings=ProgramFindings(tmp_path / "programs.jsonl"))


def test_a_wrong_compiler_is_found_once_and_its_program_made_plain(lane: Lane) -> None:
    for _ in range(20):
        lane.step()
    (found,) = lane.new
    assert dict(found.program.choices) == {"first": "nothing", "op": "x * 3"}
    assert (found.what, found.stage, found.met > 2) == ("value", "capture", True)
    assert [*lane.findings.known()] == [found.id]
    assert lane.met[found.cause_text] == found.met
    assert not lane.problems


def test_what_a_fresh_process_does_not_show_is_no_finding(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering, "code", 0)
    for _ in range(10):
        lane.step()
    assert not lane.new and len(lane.unconfirmed) == 1
    assert not Path(lane.unconfirmed[0].repro).exists()


def test_a_program_that_kills_its_process_is_looked_for_in_halves(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(programs: list[Program], *more: Any) -> program_tasks.Played:
        if any(dict(program.choices)["op"] == "x * 3" for program in programs):
            raise Died(Death(False, "signal 11"))
        return program_tasks.Played()

    monkeypatch.setattr(program_tasks, "play_all", deadly)
    for _ in range(20):
        lane.step()
    (found,) = lane.new
    assert dict(found.program.choices)["op"] == "x * 3" and found.detail == "the process died"


def test_a_session_that_goes_on_keeps_its_findings_and_draws_others(lane: Lane) -> None:
    for _ in range(10):
        lane.step()
    other = Lane(3, grammars=("writes",))
    other.go_on(lane.to_json(), 0.0)
    assert [found.id for found in other.new] == [found.id for found in lane.new]
    assert other.counts == lane.counts and other.random.random() != Random(3).random()


def test_causes_are_named_by_their_reports() -> None:
    shadowed = program("scenarios", change="sub shadowed")
    assert cause_of(shadowed, "capture", "value", "").report == "pytorch#197859"
    unknown = cause_of(program("world", place="dict"), "capture", "value", "")
    assert not unknown.report and "place=dict" in unknown.name


def test_every_cause_names_entries_that_are_there() -> None:
    """A pattern that no entry of its slot fits has gone stale."""
    import re

    for cause in causes.load():
        grammars = [g for name, g in GRAMMARS.items() if re.fullmatch(cause.grammar, name)]
        assert grammars, cause
        for slot, pattern in cause.choices:
            tables = [grammar.slots[slot] for grammar in grammars if slot in grammar.slots]
            assert any(re.fullmatch(pattern, key) for table in tables for key in table), (cause.name, slot, pattern)


def test_a_damaged_file_of_causes_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[[cause]]\nname = "x"\nchoices = { op = "(" }\n')
    with pytest.raises(UsageError, match=r"a.toml entry 1.*regular expression"):
        causes.load(tmp_path)


def test_parts_are_read_as_they_are_written() -> None:
    assert parts("## a\nx\n---\ny\nz\n## b\nw\n") == {"a": ("x", "y\nz"), "b": ("", "w")}


@pytest.mark.slow
@pytest.mark.own_process
def test_a_repro_needs_torch_alone_and_exits_1(tmp_path: Path) -> None:
    """A method replaced between two calls: no release from 2.11 to 2.15 guards it."""
    finding = ProgramFinding(
        "c", "", "capture", "value", "d", program("world", place="method"), "capture", {"torch": "x"}
    )
    file = write_script(finding, tmp_path)
    ended = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert ended.returncode == 1, ended.stderr[-500:]
    assert "value" in ended.stdout
    assert "conformance" not in file.read_text()


def test_coverage_names_what_was_never_reached() -> None:
    lane = Lane(0, grammars=("writes",))
    lane.reached.update({("postgrad", "torch.ops.aten.add.Tensor"): 2, ("fusion", "add_relu"): 1})
    text = "\n".join(program_report.coverage(lane))
    assert "fusion: 1 kinds: add_relu" in text and "cache: nothing is recorded" in text
    assert "aten.add," not in text.partition("never: ")[2] and " 1 of " in text
    assert f"writes: {sum(map(len, GRAMMARS['writes'].slots.values()))} of" in text
