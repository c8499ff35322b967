"""Recordings that go wrong only when they are used as callers use them. Each has one static buffer too many, or one too few (RUN008)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance import oracle
from conformance.backends.base import Case
from conformance.contract import Contract
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.replay import Replays
from conformance.target import Target


class Rotated(Micrograph):
    """Each row is made of another row, so that an output that is written over its input goes wrong."""

    inputs = (Tensor("4 8"),)
    contract = Contract()

    def forward(self, x):
        return x.roll(1, 0) * 0.5 + 1


class Trained(Rotated):
    """The same with gradients, which must not add up from call to call."""

    inputs = (Tensor("4 8", grad=True),)


def right() -> Callable[..., Any]:
    return Rotated().forward


def held_inputs() -> Callable[..., Any]:
    """An address that was seen before is taken for values that were seen before."""
    seen: dict[int, torch.Tensor] = {}
    kept: list[torch.Tensor] = []  # so that no new tensor is given an old one's address

    def call(x: torch.Tensor) -> torch.Tensor:
        kept.append(x)
        return Rotated().forward(seen.setdefault(x.data_ptr(), x.clone()))

    return call


def one_output() -> Callable[..., Any]:
    """Every call gives the same memory."""
    buffer = torch.empty(4, 8)
    return lambda x: buffer.copy_(Rotated().forward(x))


def written_over() -> Callable[..., Any]:
    """What was an output is taken for a place to write the next one to, row by row, before all of it is read."""
    given: list[torch.Tensor] = []

    def call(x: torch.Tensor) -> torch.Tensor:
        own = any(x is output for output in given)
        out = x if own else torch.empty_like(x)
        for row in range(len(x)):
            out[row] = x[row - 1] * 0.5 + 1
        given.append(out)
        return out.clone() if own else out

    return call


def found(call: Callable[..., Any], micrograph: type[Micrograph] = Rotated, **options: Any) -> list[str]:
    case = Case(micrograph, Target.parse("cpu"))
    replays = Replays(call, case, None, lambda inputs: oracle.reference(Rotated(), inputs), **options)
    assert not list(replays.new_values(range(3))), "with new tensors at every call it is right"
    return [when for when, _ in replays.habits()]


@pytest.mark.parametrize("micrograph", [Rotated, Trained])
def test_a_right_recording_is_quiet(micrograph: type[Micrograph]) -> None:
    assert found(right(), micrograph) == []


@pytest.mark.parametrize(
    ("broken", "when"),
    [
        (held_inputs, "inputs written before replay 2"),
        (one_output, "kept from replay 1"),
        (written_over, "output 0 given as input 0, replay 1"),
    ],
)
def test_a_broken_one_is_found(broken: Callable[[], Callable[..., Any]], when: str) -> None:
    assert found(broken())[0] == when


class Chances(Rotated):
    """An input that takes no number but a probability."""

    inputs = (Tensor("4 8", fill="uniform"),)


def test_an_output_is_given_only_where_any_number_may_be() -> None:
    assert found(written_over(), Chances) == []


def test_memory_that_is_documented_to_be_reused_may_be() -> None:
    assert found(one_output(), outputs_persist=False) == []


class CalledTwice(Rotated):
    """A micrograph of two steps: both get the same inputs."""

    steps = 2


def test_an_output_that_the_next_call_writes_over_is_not_given_to_two_calls() -> None:
    assert found(one_output(), CalledTwice, outputs_persist=False) == []
