"""A cause of a sweep becomes a script that exits 1 in a fresh interpreter while eager and the compiled call differ."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from conformance.ops import repro
from conformance.ops.call import Call, Hole, Key
from conformance.ops.causes import Cause

from .database import operator


def cause(example: str, kind: str, cell: str = "decomposition/inductor/cpu/ops.mul:float32") -> Cause:
    return Cause("decomposition", kind, example, {"mul": None}, {"float32": None}, [cell])


def test_the_call_of_a_finding_is_found_again() -> None:
    known = {"mul": operator("mul")}
    call = next(iter(repro._calls(known["mul"], "float32", "sliced", 3)))
    told = cause(f"sliced, 1 of 3 calls: {call.sentence()}: output 0: 3 elements differ", "wrong_result")
    found = repro.example(told, known)[1]
    assert found.key == call.key
    assert [t.stride() for t in found.tensors] == [t.stride() for t in call.tensors]


def test_a_finding_of_another_torch_is_said_so() -> None:
    with pytest.raises(repro.NoRepro, match="not found again"):
        repro.example(cause("plain, 1 of 1 calls: torch.mul(float32[999]): wrong", "crash"), {"mul": operator("mul")})


@pytest.mark.parametrize("kind", ["wrong_metadata", "wrong_result"])
@pytest.mark.parametrize("spell", [repro._ones, repro._counting, repro._literal])
def test_the_script_of_a_call_lays_its_tensors_out(kind: str, spell: object, tmp_path: Path) -> None:
    tensor = torch.arange(12.0)[2:].as_strided((2, 3), (1, 3), 2)
    call = Call(Key("float32", "special", 0), "torch.mul", (Hole(0), float("inf")), tensors=(tensor,), grad=True)
    text = repro.script(cause("special, 1 of 1 calls: torch.mul(…): wrong", kind), operator("mul"), call, spell)
    scope: dict[str, object] = {}
    tree = ast.parse(text)
    kept = [
        n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) or getattr(n, "name", "") in ("f", "inputs")
    ]
    exec(compile(ast.Module(kept, []), "repro", "exec"), scope)
    ((made,),) = scope["inputs"]()  # type: ignore[operator]
    assert (made.shape, made.stride(), made.storage_offset()) == (
        tensor.shape,
        tensor.stride(),
        tensor.storage_offset(),
    )
    assert made.requires_grad
    if spell is repro._literal:
        assert torch.equal(made, tensor)
    assert ("assert_close" in text) == (kind == "wrong_result")


def test_what_cannot_be_written_down_is_said() -> None:
    call = Call(Key("float32", "plain", 0), "torch.mul", (Hole(0), object()), tensors=(torch.ones(2),))
    with pytest.raises(repro.NoRepro, match="cannot be written down"):
        repro.script(cause("plain, 1 of 1 calls: torch.mul(…): wrong", "crash"), operator("mul"), call, repro._ones)


@pytest.mark.own_process
def test_only_what_exits_1_is_handed_over(tmp_path: Path) -> None:
    """`torch.mul` of a tensor and three is right (one would return its input): no spelling of its tensors makes a script that fails."""
    call = Call(Key("float32", "plain", 0), "torch.mul", (Hole(0), 3), tensors=(torch.ones(2),))
    with pytest.raises(repro.NoRepro, match="no script of it exits 1"):
        repro.written(
            cause("plain, 1 of 1 calls: torch.mul(…): wrong", "wrong_result"),
            operator("mul"),
            call,
            tmp_path / "r.py",
        )
    assert not (tmp_path / "r.py").exists()
