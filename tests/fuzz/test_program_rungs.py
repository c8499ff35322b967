"""How programs are played: kernels in one library, mutants of micrographs, backends that export, programs that are pinned."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import torch

from conformance import scenario
from conformance.fuzz import foreign, pinned, program_tasks
from conformance.fuzz.causes import cause_of
from conformance.fuzz.grammars import GRAMMARS, mutants
from conformance.fuzz.grammars.seeds import Seed
from conformance.fuzz.one_library import Library
from conformance.fuzz.program import Program
from conformance.fuzz.program_finding import ProgramFinding
from conformance.fuzz.program_tasks import Alarm, compared

KERNEL = """
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0, const int64_t ks0)
{
    for (int64_t i = 0; i < ks0; i++) out_ptr0[i] = in_ptr0[i] + %s;
}
"""
TYPES = ["const float*", "float*", "const int64_t"]
PLAIN = Seed(
    {"x": "numbers((2, 3), torch.float32, 0)", "y": "numbers((3,), torch.float32, 1)"},
    ("a = x + y", "b = a.relu()"),
    ("b",),
)


def program(grammar: str, **choices: str) -> Program:
    rules = GRAMMARS[grammar]
    return Program.of(rules, {**rules.plainest(), **choices})


def test_kernels_of_one_library_keep_apart_and_share_headers() -> None:
    text = Library([(TYPES, KERNEL % 1), (TYPES, KERNEL % 2)]).text()
    assert text.count("#include <torch/csrc/inductor/cpp_prefix.h>") == 1
    assert "namespace library_0" in text and "namespace library_1" in text
    assert "call_1(const float* arg_0, float* arg_1, const int64_t arg_2)" in text


@pytest.mark.slow
@pytest.mark.own_process
def test_kernels_of_one_library_are_called_and_raise() -> None:
    throwing = KERNEL.replace("for (", 'if (ks0 > 2) throw std::runtime_error("too many"); for (')
    library = Library([(TYPES, KERNEL % 1), (TYPES, throwing % 5)])
    x, out = torch.ones(2), torch.zeros(2)
    library.call(0, x, out, 2)
    assert out.tolist() == [2.0, 2.0]
    library.call(1, x, out, 2)
    assert out.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="too many"):
        library.call(1, x, out, 3)


@pytest.mark.parametrize(
    ("kind", "place", "statements", "outputs"),
    [
        ("none", "0", ["a = x + y", "b = a.relu()"], ["b"]),
        ("neighbour", "0", ["a = x - y", "b = a.relu()"], ["b"]),
        ("neighbour", "1", ["a = x + y", "b = a.sigmoid()"], ["b"]),
        ("clone", "0", ["a = x + y", "a = a.clone()", "b = a.relu()"], ["b"]),
        ("first input written", "3", ["a = x + y", "b = a.relu()", "x.add_(1)"], ["b"]),
        ("moved up", "1", ["b = a.relu()", "a = x + y"], ["b"]),
        ("doubled", "1", ["a = x + y", "b = a.relu()", "b = b + a.relu()"], ["b"]),
        ("kept", "0", ["a = x + y", "b = a.relu()"], ["b", "a"]),
    ],
)
def test_a_mutation_changes_one_statement(kind: str, place: str, statements: list[str], outputs: list[str]) -> None:
    choices = {"first": kind, "first_place": place, "second": "none", "second_place": "0"}
    assert mutants.mutated(PLAIN, choices) == (statements, outputs)


def test_mutants_are_python_whatever_is_drawn() -> None:
    random = Random(5)
    for _ in range(12):
        source = Program.of(mutants.GRAMMAR, mutants.GRAMMAR.draw(random, lambda slot, key: 1.0)).source
        compile(source, "mutant", "exec")


def test_a_function_is_a_micrograph_and_its_inputs_share_what_they_shared() -> None:
    x = torch.arange(6.0).view(2, 3)
    made = foreign.micrograph_of(lambda a, b: a + b, (x, x[0]))
    first, second = made.example()
    assert torch.equal(made.build()(first, second), x + x[0])
    assert first.data_ptr() == second.data_ptr() != x.data_ptr()


def test_an_exported_program_promises_no_layout() -> None:
    one = program("writes")
    want, got = (("value", (torch.ones(2, 3), False, stride)) for stride in ((3, 1), (1, 2)))
    assert compared(one, "inductor", want, got) is not None
    assert compared(one, foreign.place("torch_tensorrt", "sm_90"), want, got) is None


def test_causes_of_one_compiler_are_not_those_of_another() -> None:
    written = program("writes", snapshot="slice_scatter", out="s")
    assert cause_of(written, "codegen", "value", "").report == "pytorch#198094"
    assert not cause_of(written, "codegen", "value", "", "torch_tensorrt").report
    crashes = [cause_of(written, "runtime", "raises", f"raises ValueError: {k} dims", "autodeploy") for k in (3, 4)]
    assert crashes[0] == crashes[1]


def test_what_only_a_lower_rung_shows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = program_tasks.Looking(1.0)
    alarm = Alarm(program("writes"), "capture", "value", "")
    monkeypatch.setattr(looking, "differs", lambda program, rung: None)
    assert program_tasks.ALONE in looking.higher_up(alarm).notes[0]
    monkeypatch.setattr(looking, "differs", lambda program, rung: ("value", ""))
    assert not looking.higher_up(alarm).notes


def test_a_pinned_program_is_a_scenario(tmp_path: Path) -> None:
    finding = ProgramFinding("c", "", "capture", "value", "d", program("world", place="method"), "capture", {})
    file = pinned.write_program(finding, tmp_path)
    assert json.loads(file.read_text())["choices"]["place"] == "method"
    (made,) = pinned.micrographs("conformance_micrographs.pinned", tmp_path)
    module = made.build()
    how, results = module.play(scenario.eager(module), *made.example())
    assert how == "value" and made.has_scenario() and results


def test_an_exception_is_an_answer_of_a_pinned_program(tmp_path: Path) -> None:
    refused = program("refused_values")
    made = pinned.program_micrograph(refused, "conformance_micrographs.pinned")
    module = made.build()
    assert module.play(scenario.eager(module), *made.example()) is not None
