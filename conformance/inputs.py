"""The inputs of a micrograph: what a tensor, a number or a Python value is like, and how one is made from a seed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from conformance import layouts
from conformance.errors import UsageError


@dataclass(frozen=True)
class Tensor:
    """A tensor input.

    shape   space-separated dims: names from `dims`, numbers, or products and sums of them ("b s 2*h", "s+1")
    fill    normal | uniform | positive | zeros | ones | ties | bool | index:N (integers in [0, N), N a dim) | arange
    values  given values, repeated as often as needed, in place of `fill`: `(0.0, -0.0, float("nan"))`
    layout  one of `conformance.layouts.LAYOUTS`
    grad    requires a gradient; the oracle then compares gradients too
    shares  index of an earlier input whose storage this one is a view of, from element `offset` on
    dtypes  further dtypes that the fuzzer may use
    """

    shape: str = ""
    dtype: torch.dtype = torch.float32
    fill: str = "normal"
    layout: str = "contiguous"
    grad: bool = False
    shares: int | None = None
    offset: int = 0
    values: tuple[float | int | bool | complex, ...] = ()
    dtypes: tuple[torch.dtype, ...] = ()

    def sizes(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(size_of(term, dims) for term in self.shape.split())

    def names(self) -> tuple[str, ...]:
        """The named dims of this input, in order; unnamed ones as they are written."""
        return tuple(self.shape.split())


@dataclass(frozen=True)
class Scalar:
    """A Python number as input: `Scalar(3)`, `Scalar(0.5)`, `Scalar(True)`; the name of a dim takes its size."""

    value: int | float | bool | str


@dataclass(frozen=True)
class Value:
    """Any Python value as input: an object, a callable, a list, a dict, a dataclass. `make` is called anew for every run, so that no
    run sees what another one did to it. It may take the tensors made before it: `Value(lambda x: [x, x[0]])`."""

    make: Callable[..., Any]


Input = Tensor | Scalar | Value


def size_of(term: str, dims: Mapping[str, int]) -> int:
    """The number that a dim, or a product or sum of dims, stands for."""
    if not re.fullmatch(r"[\w+*\-/()]+", term):
        raise UsageError(f"not a size: {term!r}")
    try:
        return int(eval(term.replace("/", "//"), {"__builtins__": {}}, dict(dims)))
    except (NameError, SyntaxError, TypeError) as error:
        raise UsageError(f"the size {term!r} is not made of the dims {sorted(dims)}: {error}") from None


# ------------------------------------------------------------------------------------------- making tensors


def make_inputs(specs: tuple[Input, ...], sizes: Mapping[str, int], seed: int, device: str) -> tuple[Any, ...]:
    """Inputs as the specs say: the same for the same seed, other values for another."""
    generator = torch.Generator().manual_seed(0x5EED + seed)
    made: list[Any] = []
    for spec in specs:
        if isinstance(spec, Scalar):
            made.append(sizes[spec.value] if isinstance(spec.value, str) else spec.value)
        elif isinstance(spec, Value):
            made.append(_make_value(spec, made))
        elif spec.shares is not None:
            made.append(_view_of(made[spec.shares], spec, sizes))
        else:
            made.append(make_tensor(spec, sizes, generator, device))
    for index, spec in enumerate(specs):
        if isinstance(spec, Tensor) and spec.grad:
            made[index].requires_grad_(True)
    return tuple(made)


def _make_value(spec: Value, made: list[Any]) -> Any:
    code = getattr(spec.make, "__code__", None)
    wanted = code.co_argcount if code is not None else 0
    return spec.make(*[x for x in made if isinstance(x, torch.Tensor)][:wanted])


def make_tensor(spec: Tensor, dims: Mapping[str, int], generator: torch.Generator, device: str = "cpu") -> torch.Tensor:
    """Values are drawn on the CPU, so that they are the same everywhere. All of the storage is filled, also what the layout skips."""
    sizes = spec.sizes(dims)
    strides, offset, count = layouts.place(spec.layout, sizes)
    storage = fill(spec, max(count, 0), dims, generator).to(device)
    return torch.as_strided(storage, sizes, strides, offset)


def fill(spec: Tensor, count: int, dims: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
    """`count` values of the spec's dtype."""
    if spec.values:
        repeated = [spec.values[index % len(spec.values)] for index in range(count)]
        return torch.tensor(repeated, dtype=spec.dtype)
    kind, _, argument = spec.fill.partition(":")
    if kind == "index":
        return torch.randint(0, max(size_of(argument, dims), 1), (count,), generator=generator).to(spec.dtype)
    if kind == "bool" or spec.dtype == torch.bool:
        return (torch.rand(count, generator=generator) < 0.5).to(spec.dtype)
    if kind in ("zeros", "ones"):
        return torch.full((count,), float(kind == "ones")).to(spec.dtype)
    if kind == "arange":
        return torch.arange(count).to(spec.dtype)
    if kind == "ties":
        return torch.randint(-2, 3, (count,), generator=generator).to(spec.dtype)
    if not spec.dtype.is_floating_point and not spec.dtype.is_complex:
        low = -9 if spec.dtype.is_signed else 0
        return torch.randint(low, 10, (count,), generator=generator).to(spec.dtype)
    if kind in ("uniform", "positive"):
        return (torch.rand(count, generator=generator) + 0.5 * (kind == "positive")).to(spec.dtype)
    if kind == "normal":
        wide = torch.complex128 if spec.dtype.is_complex else torch.float32
        return torch.randn(count, generator=generator, dtype=wide).to(spec.dtype)
    raise UsageError(f"unknown fill {spec.fill!r}")


def _view_of(base: torch.Tensor, spec: Tensor, dims: Mapping[str, int]) -> torch.Tensor:
    """A part of the other input's storage, in this one's shape and layout."""
    sizes = spec.sizes(dims)
    strides, offset, count = layouts.place(spec.layout, sizes)
    held = base.untyped_storage().nbytes() // base.element_size()
    if spec.offset + max(count, 0) > held:
        raise UsageError(
            f"a view of {spec.offset + count} elements does not fit into the {held} of the input it shares with"
        )
    return torch.as_strided(base, sizes, strides, offset + spec.offset)
