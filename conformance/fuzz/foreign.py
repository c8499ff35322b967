"""Programs of the grammars through a backend of the suite that is no `torch.compile`: each is exported as a module with the
inputs of its first call. What its stages show without a GPU is looked at, too."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from conformance import backends
from conformance.backends.base import CannotRun, Case, Compiled
from conformance.checks import measured
from conformance.contract import Capture, Contract
from conformance.errors import UsageError, first_line
from conformance.fuzz import observed
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.stage import STAGES, Stage
from conformance.target import Target

# What a stage may say of itself that is wrong whatever the program promises.
CHECKS = frozenset(
    (
        measured.CONVERTED,
        measured.CACHE_WRITE,
        measured.COMPILE_WRITES,
        measured.PASS_RAISES,
        measured.PASS_METADATA,
        measured.PASS_WRONG_METADATA,
        measured.PASS_INPLACE_ORDER,
    )
)


class Observed(Exception):
    """A stage of the compile shows something wrong that the values of the call do not."""


def place(backend: str, target: str) -> str:
    """The name of the rung that is this backend for this target."""
    return f"{backend}/{target}"


def is_place(name: str) -> bool:
    return "/" in name


def compiler_of(name: str) -> Callable[[Any], Any]:
    """What programs get as `compile`: the function or module is compiled for its first call's inputs, when it is called."""
    backend, target = name.split("/")
    found, where = backends.get(backend), Target.parse(target)

    def compile(fn: Callable[..., Any]) -> Callable[..., Any]:
        made: list[Any] = []

        def call(*args: Any) -> Any:
            plain = tuple(arg.detach() if isinstance(arg, torch.Tensor) else arg for arg in args)  # the same memory
            if not made:
                made.append(found.compile(Case(micrograph_of(fn, plain), where)))
            return _run(made[0], plain)

        return call

    return compile


def _run(compiled: Compiled, args: tuple[Any, ...]) -> Any:
    """What was compiled gives for these inputs. Where a stage shows something wrong, or a program that was made for other
    kernels computes something else, that is raised in its place."""
    given = copy.deepcopy(args)
    result = _called(compiled, args)
    for said in _wrong(compiled):
        raise Observed(said)
    for name, program in compiled.variants().items():
        found = observed.difference(("value", observed.plain(result)), _tried(program, copy.deepcopy(given)))
        if found is not None and found[0] not in ("stride", "requires_grad"):
            raise Observed(f"fusion: {name} kernels: {found[0]}: {found[1]}")
    return result


def _tried(program: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "value", observed.plain(program(*args))
    except Exception as error:
        return "raised", (type(error).__name__, first_line(error))


def _called(compiled: Compiled, args: tuple[Any, ...]) -> Any:
    """What was compiled; where it was made for a GPU that is not here, the last earlier form of it that runs."""
    try:
        return compiled(*args)
    except CannotRun:
        for stage in reversed(STAGES[: Stage.RUNTIME.order]):
            if (program := compiled.at(stage)) is not None:
                with suppress(CannotRun):
                    return program(*args)
        raise
    except Exception as error:
        if said := _told(compiled, error):
            raise RuntimeError(f"{first_line(error)} {said}") from error
        raise


def _told(compiled: Compiled, error: Exception) -> str:
    """What the compiler logged last before it failed: a builder raises the same words for many causes."""
    lines = compiled.observe(compiled.blame(error)).texts.get("warnings", "").splitlines()
    return next((line for line in reversed(lines) if "Error" in line and "Cuda Runtime" not in line), "")


def _wrong(compiled: Compiled) -> Iterator[str]:
    """What the stages before the call show: a converter that gives another shape or dtype, a pass that loses one."""
    for stage in STAGES[: Stage.RUNTIME.order]:
        for finding in compiled.observe(stage).findings:
            if finding.check in CHECKS:
                yield f"{stage.value}: {finding.check}: {finding.detail}"


def micrograph_of(fn: Callable[..., Any], args: tuple[Any, ...]) -> type[Micrograph]:
    """A micrograph that computes `fn`, a function or a module, of these inputs. Copies share memory where the inputs do.
    `fn.dynamic`, where it is there, names dims that are known at run time only: (input, dim) → name."""
    if not all(isinstance(arg, torch.Tensor) for arg in args):
        raise UsageError("only programs of tensors can be exported")
    dynamic: dict[tuple[int, int], str] = getattr(fn, "dynamic", {})

    def __init__(self: Any) -> None:
        Micrograph.__init__(self)
        if isinstance(fn, nn.Module):
            self.program = copy.deepcopy(fn)

    def forward(self: Any, *inputs: Any) -> Any:
        return self.program(*inputs) if isinstance(fn, nn.Module) else fn(*inputs)

    def example(cls: Any, seed: int = 0, dims: Mapping[str, int] | None = None, device: str = "cpu") -> tuple[Any, ...]:
        return copy.deepcopy(args)

    def shape(index: int) -> str:
        return " ".join(dynamic.get((index, dim), str(size)) for dim, size in enumerate(args[index].shape))

    members = {
        "__init__": __init__,
        "forward": forward,
        "example": classmethod(example),
        "dims": {name: args[index].shape[dim] for (index, dim), name in dynamic.items()},
        "inputs": tuple(Tensor(shape(index), arg.dtype) for index, arg in enumerate(args)),
        "contract": Contract(capture=Capture(dynamic=tuple(dict.fromkeys(dynamic.values())))),
        "__module__": __name__,
    }
    return type("Program", (Micrograph,), members)
