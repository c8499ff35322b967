"""What counts as wrong of a compiled call: an error within tolerance counts only where there are elements enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from conformance.ops.call import Call, Hole, Key
from conformance.ops.judgement import differences, expected
from conformance.oracle.comparison import FEW
from conformance.verdict import Kind

from .database import operator


@pytest.mark.parametrize(("size", "told"), [(FEW * 4, [Kind.NUMERIC_DRIFT]), (3, [])])
def test_drift_of_few_elements_is_chance(size: int, told: list[Kind]) -> None:
    x = torch.rand(size, generator=torch.Generator().manual_seed(0)) + 1
    known = expected(Call(Key("float32", "plain", 0), "torch.mul", (Hole(0), 3.0), tensors=(x,)))
    eager = known.first.eager
    drifted = replace(eager, outputs=[eager.outputs[0] * (1 + 9e-7)])
    assert [one.kind for one in differences(operator("mul"), known.call, drifted, known.first)] == told


def test_a_wrong_value_of_few_elements_is_wrong() -> None:
    known = expected(Call(Key("float32", "plain", 0), "torch.mul", (Hole(0), 3.0), tensors=(torch.ones(2),)))
    eager = known.first.eager
    wrong = replace(eager, outputs=[eager.outputs[0] * 2])
    assert [one.kind for one in differences(operator("mul"), known.call, wrong, known.first)] == [Kind.WRONG_RESULT]
