"""What scripts use besides torch.compile: exported programs, packages of AOTInductor, Torch-TensorRT; and the third set of
scripts."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from conformance.backends.inductor.triage.ahead_of_time import AheadOfTime
from conformance.backends.inductor.triage.holder import lowered_target
from conformance.backends.inductor.triage.ladder import called_once
from conformance.backends.inductor.triage.seam import seam
from conformance.backends.inductor.triage.steps import pattern_name
from conformance.stage import Stage
from conformance.triage.ending import Ending
from conformance.triage.script_triage import compiler_of

THIRD = Path(__file__).parent / "scripts_third"
TRUTH = tomllib.loads((THIRD / "truth.toml").read_text())


class AddOne(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


@pytest.mark.own_process
@pytest.mark.parametrize("rung", ["eager", "captured"])
def test_a_package_holds_the_program_of_its_rung(rung: str, tmp_path: Path) -> None:
    module, x = AddOne(), torch.ones(2)
    with seam.subscribe(**AheadOfTime(rung).subscribers()):
        program = torch.export.export(module, (x,))
        path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "one.pt2"))
        loaded = torch._inductor.aoti_load_package(path)
    assert torch.equal(loaded(x), x + 1)
    assert (program.module() is module, loaded is module) == (rung == "eager", rung == "eager")
    if rung == "captured":  # another process finds the exported program in the file
        with seam.subscribe(**AheadOfTime(rung).subscribers()):
            assert torch.equal(torch._inductor.aoti_load_package(path)(x), x + 1)


def test_generated_code_is_packed_as_usual() -> None:
    assert not any(AheadOfTime(rung).subscribers() for rung in ("unfused", "program", "uncached", "whole"))


def test_the_op_whose_lowering_raises_is_read_from_the_message() -> None:
    text = "LoweringException: AssertionError: no\n  target: aten.sin.default\n  args[0]: TensorBox()"
    assert lowered_target(RuntimeError(text)) == "aten.sin.default"
    assert lowered_target(RuntimeError("AssertionError: the target: none")) == ""


def test_a_pattern_is_named_by_the_function_it_was_traced_from() -> None:
    def attention_by_hand() -> None: ...

    def checked(search_fn: object) -> object:
        return lambda match: search_fn

    assert pattern_name(SimpleNamespace(extra_check=checked(attention_by_hand))) == "attention_by_hand"
    assert pattern_name(SimpleNamespace(extra_check=len, pattern_name="known")) == "known"
    assert pattern_name(SimpleNamespace(extra_check=len)) == "SimpleNamespace"


def test_one_call_needs_no_guard() -> None:
    call = {"event": "call", "pid": 1}
    assert [called_once(Ending(1, events=(call,) * number)) for number in (0, 1, 2)] == [False, True, False]


@pytest.mark.parametrize(
    ("text", "compiler"),
    [
        ("import torch", "inductor"),
        ("import torch_tensorrt", "torch_tensorrt"),
        ("def f():\n    from torch_tensorrt.dynamo import compile", "torch_tensorrt"),
        ("import torch_tensorrt_tools", "inductor"),
        ("from tensorrt_llm._torch.auto_deploy import LLM", "autodeploy"),
    ],
)
def test_the_compiler_is_the_one_that_a_script_imports(text: str, compiler: str) -> None:
    assert compiler_of(text) == compiler


def test_the_third_set_is_complete_and_says_what_it_stands_for() -> None:
    assert sorted(TRUTH) == sorted(path.stem for path in THIRD.glob("*.py"))
    assert {truth["stage"] for truth in TRUTH.values()} >= {stage.value for stage in Stage} - {"runtime"}
    for name in TRUTH:
        text = (THIRD / f"{name}.py").read_text()
        said = ast.get_docstring(ast.parse(text))
        assert said and said.startswith(("pytorch#", "No report known: ")), name
        assert len(text.splitlines()) <= 40, name
