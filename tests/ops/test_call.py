"""A call as source text: the same for a wide program, a single one and a repro."""

from __future__ import annotations

import math

import torch

from conformance.ops.call import Call, Hole, Key, Scope, literal, program, with_holes

KEY = Key("float32", "plain", 0)


def test_what_python_can_spell_is_spelled() -> None:
    scope = Scope()
    values = [
        1,
        -2.5,
        None,
        True,
        "sum",
        (3,),
        [1, (2, 3)],
        {"dim": 0},
        torch.float16,
        slice(1, None),
        math.inf,
        -math.inf,
    ]
    for value in values:
        assert eval(literal(value, [], scope), scope.values) == value
    assert math.isnan(eval(literal(math.nan, [], scope), scope.values))


def test_what_python_cannot_spell_gets_a_name() -> None:
    scope, thing = Scope(), object()
    assert eval(literal([thing], [], scope), scope.values) == [thing]


def test_the_same_tensor_has_one_hole() -> None:
    x, y = torch.ones(2), torch.zeros(2)
    value, tensors = with_holes(([x, y, x], {"out": y}))
    assert value == ([Hole(0), Hole(1), Hole(0)], {"out": Hole(1)})
    assert tensors[0] is x and tensors[1] is y


def test_a_wide_program_is_its_calls_side_by_side() -> None:
    calls = [
        Call(KEY, "torch.add", (Hole(0), Hole(1)), {"alpha": 2}, (torch.ones(2), torch.ones(2))),
        Call(KEY, "torch.cat", ([Hole(0), Hole(0)],), {"dim": 0}, (torch.zeros(1),)),
        Call(KEY, lambda x: (x, x + 1), (Hole(0, "[1:]"),), {}, (torch.arange(3),)),
    ]
    wide = program(calls)(*(tensor for call in calls for tensor in call.tensors))
    assert torch.equal(wide[0], torch.full((2,), 3.0))
    assert wide[1].shape == (2,)
    assert torch.equal(wide[2][1], torch.tensor([2, 3]))
    assert "torch.add(t0, t1, alpha=2)" in program(calls).source


def test_a_sentence_describes_the_tensors() -> None:
    call = Call(KEY, "torch.add", (Hole(0), 1), {}, (torch.ones(2, 3).t(),))
    assert call.sentence() == "torch.add(float32[3, 2] stride (1, 3), 1)"
