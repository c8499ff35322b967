"""Ten programs that are nearly the pattern: the first difference is named, and where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.passes.form import Form, Op, Ref
from conformance.passes.near_miss import matches, nearest
from conformance.passes.pattern import Call, Dims, Input, Pattern, from_json, source, to_json

BF16 = torch.bfloat16


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x.to(torch.float32)
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(BF16)


def fused(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, (64,), weight, 1e-6)


def scale(x: torch.Tensor, eps: float = 1e-6, dim: int = -1, power: int = 2) -> torch.Tensor:
    return torch.rsqrt(x.pow(power).mean(dim, keepdim=True) + eps)


def other_eps(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return w * (wide * scale(wide, eps=1e-5)).to(BF16)


def used_elsewhere(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    normal = (wide * scale(wide)).to(BF16)
    return w * normal, normal


def without_the_cast(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return w * (wide * scale(wide))


def cast_moved(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return (w * (wide * scale(wide))).to(BF16)


def operands_swapped(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return (wide * scale(wide)).to(BF16) * w


def sum_for_mean(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return w * (wide * torch.rsqrt(wide.pow(2).sum(-1, keepdim=True) + 1e-6)).to(BF16)


def other_dim(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return w * (wide * scale(wide, dim=0)).to(BF16)


def other_power(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return w * (wide * scale(wide, power=3)).to(BF16)


def other_dtype(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return w * (wide * scale(wide)).to(torch.float16)


def another_scale(x: torch.Tensor, w: torch.Tensor) -> Any:
    wide = x.to(torch.float32)
    return w * (wide * (scale(wide) * 1.5)).to(BF16)


# Program → the kind of the first difference, the op of the pattern that it names, and what the graph has there.
EXPECTED: dict[Callable[..., Any], tuple[str, str, str]] = {
    other_eps: ("argument", "aten.add.Tensor = 1e-06", "1e-05"),
    used_elsewhere: ("users", "1 user of prims.convert_element_type", "2 users, the output too"),
    without_the_cast: ("op", "prims.convert_element_type", "aten.mul.Tensor"),
    cast_moved: ("op", "prims.convert_element_type", "aten.mul.Tensor"),
    operands_swapped: ("order", "aten.mul.Tensor(weight, prims.convert_element_type", "the other way round"),
    sum_for_mean: ("op", "aten.mean.dim", "aten.sum.dim_IntList"),
    other_dim: ("argument", "argument 1 of aten.mean.dim", "[0]"),
    other_power: ("argument", "aten.pow.Tensor_Scalar = 2", "3"),
    other_dtype: ("dtype", "prims.convert_element_type.default = bfloat16", "float16"),
    another_scale: ("op", "aten.rsqrt", "aten.mul.Tensor"),
}


@pytest.mark.own_process
def test_ten_near_misses_are_explained_by_their_first_difference() -> None:
    from conformance.passes.refusal import explain
    from conformance.passes.seam import seam
    from conformance.passes.subject import subject_of

    subject = subject_of((norm, fused, [torch.empty(4, 64, dtype=BF16), torch.empty(64, dtype=BF16)]))
    mode = seam.fake_mode()
    given = [mode.from_tensor(torch.empty(4, 64, dtype=BF16)), mode.from_tensor(torch.empty(64, dtype=BF16))]
    wrong = {}
    for program, (kind, expected, found) in EXPECTED.items():
        with mode:
            gm = seam.fwd_only(program, given)
        first = explain(subject, gm)[0].first
        if first is None or first.kind != kind or expected not in first.expected or found not in first.found:
            wrong[program.__name__] = str(first)
    assert wrong == {}
    with mode:
        assert explain(subject, seam.fwd_only(norm, given))[0].first is None


@pytest.mark.own_process
def test_a_check_that_refuses_and_a_write_in_between_are_named() -> None:
    from conformance.passes.refusal import explain
    from conformance.passes.seam import seam
    from conformance.passes.subject import subject_of

    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * y

    def written(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        positive = torch.relu(x)
        y.add_(1)
        return positive * y

    example = [torch.empty(4, 4), torch.empty(4, 4)]
    mode = seam.fake_mode()
    given = [mode.from_tensor(x) for x in example]
    picky = subject_of((product, product, example, {"extra_check": lambda match: False}))
    plain = subject_of((product, product, example))
    with mode:
        first = explain(picky, seam.fwd_only(product, given))[0].first
        assert first is not None and (first.kind, first.found) == ("check", "it refused")
        assert explain(plain, seam.fwd_only(product, given))[0].first is None
        gm = seam.fwd_only(written, given)
    across = explain(plain, gm)[0].first
    assert across is not None and across.kind == "write" and "relu" in across.found


# ------------------------------------------------------------------------------------------- without torch


def chain(*calls: tuple[str, str, tuple[Any, ...]]) -> Form:
    ops = [Op("x", "input", "x"), *(Op(name, "call", target, args) for name, target, args in calls)]
    return Form([*ops, Op("output", "output", "output", (Ref(ops[-1].name),))])


def test_every_match_is_found_and_none_twice() -> None:
    pattern = Pattern("p", (Call(("relu",), (Call(("neg",), (Input("x"),)),)),))
    form = chain(
        ("a", "neg", (Ref("x"),)), ("b", "relu", (Ref("a"),)), ("c", "neg", (Ref("b"),)), ("d", "relu", (Ref("c"),))
    )
    assert matches(pattern, form) == [["c", "d"], ["a", "b"]]
    assert matches(pattern, chain(("a", "neg", (Ref("x"),)))) == []


def test_what_has_one_name_in_the_pattern_is_one_value() -> None:
    pattern = Pattern("p", (Call(("add",), (Input("x"), Input("x"))),))
    form = chain(("a", "neg", (Ref("x"),)), ("b", "add", (Ref("a"), Ref("x"))))
    first = nearest(pattern, form).first
    assert first is not None and first.kind == "value" and first.expected == "x = a again"


def test_dims_count_from_either_end() -> None:
    pattern = Pattern("p", (Call(("mean",), (Input("x"), Dims((-1,), 3))),))
    assert matches(pattern, chain(("a", "mean", (Ref("x"), (2,)))))
    assert not matches(pattern, chain(("a", "mean", (Ref("x"), (1,)))))


def test_a_graph_without_any_op_of_the_pattern_has_no_near_miss() -> None:
    miss = nearest(Pattern("p", (Call(("relu",), (Input("x"),)),)), chain(("a", "neg", (Ref("x"),))))
    assert miss.matched == 0 and miss.first is not None and miss.first.found == "no such op anywhere"


def test_a_pattern_survives_json_and_is_shown_as_source() -> None:
    shared = Call(("neg",), (Input("x"),), users=2)
    pattern = Pattern("p", (Call(("add",), (shared, Call(("relu",), (shared,)))),))
    again = from_json(to_json(pattern))
    assert str(again) == str(pattern) and len(again.calls()) == 3
    text = source(again)
    assert text.splitlines()[0] == "shared_0 = CallFunction(neg, KeywordArg('x'), _users=2)"
    assert text.splitlines()[-1] == "pattern = CallFunction(add, shared_0, CallFunction(relu, shared_0))"
