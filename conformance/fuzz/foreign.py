"""Programs of the grammars through a backend of the suite that is no `torch.compile`: each is exported as a module without
parameters, with the inputs of its first call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch

from conformance import backends
from conformance.backends.base import CannotRun, Case, Compiled
from conformance.contract import Contract
from conformance.errors import UsageError
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.stage import STAGES, Stage
from conformance.target import Target


def place(backend: str, target: str) -> str:
    """The name of the rung that is this backend for this target."""
    return f"{backend}/{target}"


def is_place(name: str) -> bool:
    return "/" in name


def compiler_of(name: str) -> Callable[[Any], Any]:
    """What programs get as `compile`: the function is compiled for its first call's inputs, when it is called."""
    backend, target = name.split("/")
    found, where = backends.get(backend), Target.parse(target)

    def compile(fn: Callable[..., Any]) -> Callable[..., Any]:
        made: list[Any] = []

        def call(*args: Any) -> Any:
            if not made:
                made.append(found.compile(Case(micrograph_of(fn, args), where)))
            return _run(made[0], args)

        return call

    return compile


def _run(compiled: Compiled, args: tuple[Any, ...]) -> Any:
    """What was compiled; where it was made for a GPU that is not here, the last earlier form of it that runs."""
    try:
        return compiled(*args)
    except CannotRun:
        for stage in reversed(STAGES[: Stage.RUNTIME.order]):
            if (program := compiled.at(stage)) is not None:
                with suppress(CannotRun):
                    return program(*args)
        raise


def micrograph_of(fn: Callable[..., Any], args: tuple[Any, ...]) -> type[Micrograph]:
    """A micrograph that computes `fn` of these inputs. Copies share memory where the inputs do."""
    if not all(isinstance(arg, torch.Tensor) for arg in args):
        raise UsageError("only programs of tensors can be exported")

    def forward(self: Any, *inputs: Any) -> Any:
        return fn(*inputs)

    def example(cls: Any, seed: int = 0, dims: Mapping[str, int] | None = None, device: str = "cpu") -> tuple[Any, ...]:
        return copy.deepcopy(args)

    members = {
        "forward": forward,
        "example": classmethod(example),
        "inputs": tuple(Tensor(" ".join(map(str, arg.shape)), arg.dtype) for arg in args),
        "contract": Contract(),
        "__module__": __name__,
    }
    return type("Program", (Micrograph,), members)
