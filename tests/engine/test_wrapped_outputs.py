"""A program may give a tensor that only wraps others: its class, what it says of itself and what is inside are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from conformance import oracle
from conformance.verdict import Kind


class Wrapper(torch.Tensor):
    """One tensor, and a note."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor, note: str = "") -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device
        )

    def __init__(self, inner: torch.Tensor, note: str = "") -> None:
        self.held, self.note = inner, note

    def __tensor_flatten__(self) -> tuple[list[str], str]:
        return ["held"], self.note

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        bare = pytree.tree_map_only(Wrapper, lambda value: value.held, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, cls, func(*bare[0], **bare[1]))


class Other(Wrapper):
    """Another class."""


def differences(program: Callable[..., Any], instead: Callable[..., Any]) -> list[oracle.Difference]:
    """Where another program differs from eager's."""
    x = torch.arange(6.0).view(2, 3)
    eager, got = (oracle.run(fn, oracle.clone_inputs((x,))) for fn in (program, instead))
    assert eager.error is None
    assert got.error is None
    return oracle.compare(got, oracle.Reference(eager, None))


@pytest.mark.parametrize("nested", [False, True])
def test_equal_wrappers_are_equal(nested: bool) -> None:
    def program(x: torch.Tensor) -> Any:
        wrapper = Wrapper(x * 2, "a")
        return {"list": [Wrapper(wrapper), x]} if nested else wrapper

    assert not differences(program, program)


@pytest.mark.parametrize(
    ("instead", "kind"),
    [
        (lambda x: x * 2, Kind.WRONG_METADATA),  # no wrapper
        (lambda x: Other(x * 2, "a"), Kind.WRONG_RESULT),
        (lambda x: Wrapper(x * 2, "b"), Kind.WRONG_RESULT),
        (lambda x: Wrapper(x * 3, "a"), Kind.WRONG_RESULT),
        (lambda x: Wrapper((x * 2).double(), "a"), Kind.WRONG_METADATA),
        (lambda x: Wrapper((x * 2).t().contiguous().t(), "a"), Kind.WRONG_METADATA),
        (lambda x: Wrapper(x.mul_(2), "a"), Kind.LOST_ALIAS),  # inside it is the input
    ],
)
def test_every_difference_of_a_wrapper_is_found(instead: Callable[..., Any], kind: Kind) -> None:
    found = differences(lambda x: Wrapper(x * 2, "a"), instead)
    assert kind in {difference.kind for difference in found}


def test_gradients_go_through_a_wrapper() -> None:
    def outcome(factor: float) -> oracle.Outcome:
        class Wrap(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> Any:
                return Wrapper(x * factor)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return (grad.held if isinstance(grad, Wrapper) else grad) * factor

        return oracle.run(Wrap.apply, (torch.ones(3, requires_grad=True),))

    one, other = outcome(1.0).grads["input 0"], outcome(2.0).grads["input 0"]
    assert one is not None
    assert other is not None
    assert torch.equal(one * 2, other)


def test_a_wrapper_may_be_given() -> None:
    def outcome(factor: float) -> oracle.Outcome:
        return oracle.run(lambda x: x * factor, (Wrapper(torch.ones(3)),))

    assert outcome(1.0).error is None
    found = oracle.compare(outcome(2.0), oracle.Reference(outcome(1.0), None))
    assert {difference.kind for difference in found} == {Kind.WRONG_RESULT}
