"""Calls of which nothing can be said: eager does not take them, or the compiler says that it is not made for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import CannotRun, Case


class Rejected(Exception):
    """Eager does not take these inputs: nothing can be said of a compiler."""


class Refused(Rejected):
    """The compiler does not take these marks: the graph fixes a dim at one of these sizes."""

    def __init__(self, error: BaseException | None) -> None:
        super().__init__("a dim that is marked dynamic is fixed by the graph at these sizes")
        self.sizes = {int(size) for size in re.findall(r"specialized it to be a constant \((\d+)\)", str(error))}


def reference(
    module: Any, inputs: tuple[Any, ...], case: Case, fn: Callable[..., Any] | None = None
) -> oracle.Reference:
    ref = oracle.reference(
        module, inputs, random=case.micrograph.contract.runtime.random, calls=case.micrograph.steps, fn=fn
    )
    if ref.eager.error is not None:
        raise Rejected(f"{type(ref.eager.error).__name__}: {ref.eager.error}")
    if any(overlaps(inputs[index]) for index in oracle.mutated(ref.eager, inputs)):
        raise Rejected("it writes to elements that share memory, and which write is the last is not specified")
    return ref


def overlaps(value: torch.Tensor) -> bool:
    """Are there more elements than places for them?"""
    places = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    return places < value.numel()


def refused(error: BaseException | None, unbacked: bool = False) -> bool:
    """A mark says that a dim is never to be fixed. Where the graph fixes it, the refusal is what was asked for. A dim that is
    unbacked is not even looked at: a compiler that must look says so, and so does one whose assumption a size breaks."""
    if error is None:
        return False
    must_look = ("data-dependent", "Runtime assertion failed", "PendingUnbackedSymbol", "unbacked")
    return "ConstraintViolation" in type(error).__name__ or (
        unbacked and any(word in f"{type(error)} {error}" for word in must_look)
    )


def cannot_run(error: BaseException | None) -> bool:
    """Not here, or not by an interpreter: numpy refuses numbers that the machine wraps around (`~x` of uint8 is `x ^ -1`)."""
    return isinstance(error, CannotRun) or (isinstance(error, OverflowError) and "out of bounds for" in str(error))


def declined(error: BaseException | None) -> bool:
    """An adapter's own word that the backend is not made for this (no gradients, say), or that torch.export is not."""
    return type(error).__module__.startswith("conformance.backends.")
