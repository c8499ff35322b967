"""What is triaged: a cell of the suite, or anybody's module with inputs.

conformance triage runtime/inductor/cpu/mutation.add_input
conformance triage model.py:Block          # a class, an object or a function; the file says `example_inputs = (…)`
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from conformance import oracle
from conformance.cell import Cell
from conformance.contract import Capture, Contract, Runtime
from conformance.errors import UsageError, first_line, unknown
from conformance.inputs import Tensor
from conformance.library import load
from conformance.micrograph import Micrograph


@dataclass(frozen=True)
class Subject:
    micrograph: type[Micrograph]
    backend: str
    target: str
    source: str  # as the user wrote it
    given: bool = False  # a user's own: the fresh process of the cache stage could not load it by its name


def find(text: str, backend: str = "inductor", target: str = "cpu", folder: Path | str | None = None) -> Subject:
    if ".py:" in text or text.endswith(".py"):
        subject = Subject(_of_file(text), backend, target, text, given=True)
    else:
        cell = Cell.parse(text)
        library = load(folder)
        if cell.micrograph not in library:
            raise unknown("micrograph", cell.micrograph, library)
        subject = Subject(library[cell.micrograph], cell.backend, cell.target, text)
    _runs_the_same_twice(subject.micrograph)
    return subject


# ------------------------------------------------------------------------------------------ user's file


def _of_file(text: str) -> type[Micrograph]:
    path, _, name = text.rpartition(":")
    file = Path(path or text)
    if not path or not name:
        raise UsageError(f"say which object: {text}:NAME (a module class, a module or a function of that file)")
    if not file.exists():
        raise UsageError(f"no file {file}")
    module = _import(file)
    if not hasattr(module, name):
        raise unknown(f"object in {file}", name, [n for n in vars(module) if not n.startswith("_")])
    found = getattr(module, name)
    if isinstance(found, type) and issubclass(found, Micrograph):
        return found
    inputs = getattr(found, "example_inputs", None) or getattr(module, "example_inputs", None)
    if inputs is None:
        raise UsageError(
            f"{file} gives no inputs: add `example_inputs = (tensor, …)` (or a function of that name) beside {name}"
        )
    return wrap(_module(found, text), _inputs(inputs, text), name)


def _import(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"triaged_{file.stem}", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file} does not import: {first_line(error)}") from None
    finally:
        sys.path.pop(0)
    return module


def _module(found: Any, text: str) -> nn.Module:
    if isinstance(found, type) and issubclass(found, nn.Module):
        torch.manual_seed(0)
        try:
            return found()
        except TypeError as error:
            raise UsageError(
                f"{text} cannot be made without arguments ({first_line(error)}); name a module object instead"
            ) from None
    if isinstance(found, nn.Module):
        return found
    if callable(found):
        return _Function(found)
    raise UsageError(f"{text} is a {type(found).__name__}; triage takes a module class, a module or a function")


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def _inputs(given: Any, text: str) -> tuple[Any, ...]:
    torch.manual_seed(0)
    values = given() if callable(given) else given
    if not isinstance(values, (tuple, list)):
        raise UsageError(f"example_inputs of {text} must be a tuple, it is a {type(values).__name__}")
    return tuple(values)


def wrap(module: nn.Module, inputs: tuple[Any, ...], name: str, file: str | None = None) -> type[Micrograph]:
    """A micrograph of a module: its contract is what eager does, and that it is captured whole."""
    eager = oracle.run(module, oracle.clone_inputs(inputs), module)
    if eager.error is not None:
        raise UsageError(
            f"{name} does not run in eager: {first_line(eager.error)}; triage needs a module that works there"
        )
    written = tuple(oracle.mutated(eager, inputs))

    class Given(Micrograph):
        contract = Contract(capture=Capture(), runtime=Runtime(mutates=written, random=eager.drawn))

        def __init__(self) -> None:
            super().__init__()
            self.given = copy.deepcopy(module)

        def forward(self, *values: Any) -> Any:
            return self.given(*values)

        @classmethod
        def build(cls, seed: int = 0) -> Micrograph:
            return cls().train(module.training)

        @classmethod
        def example(cls, seed: int = 0, dims: Any = None, device: str = "cpu") -> tuple[Any, ...]:
            values = oracle.clone_inputs(inputs)
            return tuple(_other(v, seed) if seed else v for v in values)

        @classmethod
        def name(cls) -> str:
            return f"given.{name}"

        @classmethod
        def digest(cls) -> str:
            return "given"

    Given.inputs = tuple(Tensor(" ".join(map(str, x.shape)), x.dtype) for x in inputs if isinstance(x, torch.Tensor))
    Given.__name__ = name
    return Given


def _other(value: Any, seed: int) -> Any:
    """Other values of the same kind."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value.dtype)
    with torch.no_grad():
        value.copy_(noise) if value.numel() and 0 not in value.stride() else None
    return value


def _runs_the_same_twice(cls: type[Micrograph]) -> None:
    module, steps = cls.build(), cls.steps
    first = oracle.run(module, cls.example(0), module, calls=steps)
    if first.error is not None:
        raise UsageError(
            f"{cls.name()} does not run in eager: {first_line(first.error)}; triage needs a module that works there"
        )
    again = oracle.run(module, cls.example(0), module, calls=steps)
    differences = oracle.compare(again, oracle.Reference(first, None))
    if differences:
        raise UsageError(
            f"{cls.name()} is not deterministic in eager ({differences[0]}); fix its seeds or state before triage"
        )
