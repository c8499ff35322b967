"""One call of an operator: an expression over tensors. The same text is what a wide program and a repro say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import nn

from conformance.torch_seam import pytree

SPELLED = (bool, int, str, float, complex, type(None))  # whose repr is Python; `inf` and `nan` are names of every scope


@dataclass(frozen=True)
class Hole:
    """The place of a tensor among the arguments of a call. `view` is what is taken of it: `[1:-1]`."""

    index: int
    view: str = ""


@dataclass(frozen=True, order=True)
class Key:
    """Which call of an operator it is: the same in every process, since samples are drawn from equal seeds."""

    dtype: str
    form: str
    sample: int

    def __str__(self) -> str:
        return f"{self.dtype} {self.form} sample {self.sample}"


class Scope:
    """Names for the objects that a source text cannot spell."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {"torch": torch, "inf": math.inf, "nan": math.nan}
        self._names: dict[int, str] = {}

    def name(self, value: Any, stem: str) -> str:
        if id(value) not in self._names:
            self._names[id(value)] = f"{stem}{len(self._names)}"
            self.values[self._names[id(value)]] = value
        return self._names[id(value)]


@dataclass(frozen=True)
class Call:
    """`function(*args, **kwargs)`, tensors apart.

    function   what is called: a dotted name of torch (`torch.add`), or a callable that has none
    args       the arguments, with a `Hole` for each tensor; nested lists and dicts are kept
    tensors    what goes into the holes
    again      tensors of other sizes for a second call; empty: there is none
    grad       gradients are taken, too
    raises     eager refuses this call, and so must a compiled one
    """

    key: Key
    function: str | Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    tensors: tuple[torch.Tensor, ...] = ()
    again: tuple[torch.Tensor, ...] = ()
    grad: bool = False
    raises: bool = False

    def text(self, names: Sequence[str], scope: Scope) -> str:
        """The call as Python source; `names` are the names of its tensors."""
        function = self.function if isinstance(self.function, str) else scope.name(self.function, "op")
        parts = [literal(value, names, scope) for value in self.args]
        parts += [f"{name}={literal(value, names, scope)}" for name, value in self.kwargs.items()]
        return f"{function}({', '.join(parts)})"

    @cached_property
    def module(self) -> nn.Module:
        """The call as a module of its tensors, for the oracle."""
        return program([self])

    def sentence(self) -> str:
        """The call in one line, its tensors described: `torch.add(float32[2, 3] stride (1, 2), 1)`."""
        line = self.text([described(tensor) for tensor in self.tensors], Scope())
        return line if len(line) <= 220 else line[:219] + "…"


def described(tensor: torch.Tensor) -> str:
    """`float32[2, 3]`, with strides where they are not those of a contiguous tensor."""
    text = f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"
    return text if tensor.is_contiguous() else f"{text} stride {tuple(tensor.stride())}"


class Wide(nn.Module):
    """Many calls in one graph. Their tensors are disjoint, and so are the parts of the graph that they become."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__()
        scope, lines, at = Scope(), [], 0
        for number, call in enumerate(calls):
            names = [f"t{at + index}" for index in range(len(call.tensors))]
            at += len(names)
            lines.append(f"    r{number} = {call.text(names, scope)}")
        results = "".join(f"r{number}, " for number in range(len(calls)))
        self.source = "\n".join([f"def function({', '.join(f't{i}' for i in range(at))}):", *lines])
        self.source += f"\n    return ({results})" if len(calls) > 1 else "\n    return r0"
        exec(compile(self.source, "<conformance ops>", "exec"), scope.values)
        self.function = scope.values["function"]

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.function(*tensors)

    def __deepcopy__(self, memo: dict[int, Any]) -> Wide:
        return self  # it has no state, and what it calls cannot always be copied


def program(calls: Sequence[Call]) -> Wide:
    """One function for all calls: it takes all of their tensors and returns a tuple of results; the result itself where there is one
    call."""
    return Wide(calls)


def literal(value: Any, names: Sequence[str], scope: Scope) -> str:
    """A value as Python source."""
    if isinstance(value, Hole):
        return names[value.index] + value.view
    if isinstance(value, torch.Size):
        return repr(tuple(value))
    if type(value) in (list, tuple):
        inner = ", ".join(literal(one, names, scope) for one in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        inner = ", ".join(f"{literal(name, names, scope)}: {literal(one, names, scope)}" for name, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, slice):
        return f"slice({', '.join(literal(one, names, scope) for one in (value.start, value.stop, value.step))})"
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if type(value) is complex and not (math.isfinite(value.real) and math.isfinite(value.imag)):
        return scope.name(value, "value")  # its repr is no Python
    if type(value) in SPELLED or isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return repr(value)
    return "..." if value is Ellipsis else scope.name(value, "value")


def with_holes(value: Any) -> tuple[Any, list[torch.Tensor]]:
    """The value with a hole for each tensor, and the tensors. The same tensor twice has one hole."""
    found: list[torch.Tensor] = []

    def hole(tensor: torch.Tensor) -> Hole:
        for index, one in enumerate(found):
            if one is tensor:
                return Hole(index)
        found.append(tensor)
        return Hole(len(found) - 1)

    return pytree.tree_map_only(torch.Tensor, hole, value), found


def holes(value: Any) -> Iterator[Hole]:
    """The holes of a value, in order."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, Hole):
            yield leaf
