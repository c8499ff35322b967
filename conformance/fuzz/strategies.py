"""What may be drawn for a micrograph, from its own input specs.

A draw has two parts, for they have two prices. A *form* is what a compile depends on: which dims are 0, 1 or more, layouts,
aliasing, dtype. A *call* is what one compiled program serves: the sizes, the values. So forms come from a small pool,
simplest first (where shrinking ends), and calls are drawn freely.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from conformance import oracle
from conformance.fuzz.example import INTEGERS, VALUES, Call, Example, Given
from conformance.fuzz.layout import LAYOUTS, REPEATS, possible
from conformance.micrograph import Micrograph, Scalar, Tensor

# Ends, primes, powers of two and their neighbours: what vector widths, tiles and unrolled loops stumble over.
SIZES = (2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 65, 97, 127, 128, 129, 255, 257, 511, 1023, 1025)
LARGEST = {0: 1025, 1: 1025, 2: 257, 3: 65, 4: 33}  # by the number of dims that vary
ELEMENTS = 2**17  # of one input; what a graph makes of it may have a dim more
# Which of equal elements is taken is nobody's promise.
AMBIGUOUS = {"aten.topk", "aten.sort", "aten.argmax", "aten.argmin", "aten.max", "aten.min", "aten.median", "aten.kthvalue", "aten.mode"}


@dataclass(frozen=True, order=True)
class Form:
    """What a compile depends on. The order of forms is their order of simplicity."""

    cost: int  # how far it is from plain
    strata: tuple[tuple[str, int], ...]  # dim → 0, 1, or 2 for anything above
    given: tuple[Given, ...]
    dtype: str = ""
    dynamic: bool = True
    unbacked: tuple[str, ...] = ()  # dims that the compiler may not look at: one program for 0, 1 and more

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", self._cost())

    def _cost(self) -> int:
        odd = sum(stratum != 2 for _, stratum in self.strata) + bool(self.dtype) + (not self.dynamic) + len(self.unbacked)
        return odd + sum(LAYOUTS.index(g.layout) + 20 * (g.shares is not None) for g in self.given)

    def simpler(self) -> Iterator[Form]:
        """Forms that are one step nearer to plain."""
        for index, given_ in enumerate(self.given):
            if given_.shares is not None:
                yield self._with(index, replace(given_, shares=None, same=False))
            for layout in LAYOUTS[: LAYOUTS.index(given_.layout)]:
                yield self._with(index, replace(given_, layout=layout))
        if self.dtype:
            yield replace(self, dtype="")
        if self.unbacked:
            yield replace(self, unbacked=())
        for index, (dim, stratum) in enumerate(self.strata):
            if stratum != 2:
                yield replace(self, strata=(*self.strata[:index], (dim, 2), *self.strata[index + 1 :]))

    def _with(self, index: int, given_: Given) -> Form:
        return replace(self, given=(*self.given[:index], given_, *self.given[index + 1 :]))


@cache
def ops(micrograph: type[Micrograph]) -> frozenset[str]:
    """The ops that eager runs."""
    found: set[str] = set()

    class Recording(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found.add(str(func.overloadpacket))
            return func(*args, **(kwargs or {}))

    with Recording():
        module = micrograph.build()
        oracle.run(module, micrograph.example(0), module)
    return frozenset(found)


def delicate(micrograph: type[Micrograph]) -> bool:
    """Are equal elements to be avoided?"""
    return bool(ops(micrograph) & AMBIGUOUS)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------- forms


def plain(micrograph: type[Micrograph]) -> Form:
    """As the micrograph declares itself, every dim dynamic."""
    given_ = tuple(Given(layout=spec.layout if isinstance(spec, Tensor) else "contiguous") for spec in micrograph.inputs)
    return Form(0, tuple((dim, stratum(size)) for dim, size in micrograph.dims.items()), given_)


def stratum(size: int) -> int:
    return min(size, 2)


def layouts(spec: Tensor, avoid_repeats: bool) -> st.SearchStrategy[str]:
    rank = len(spec.names())
    if spec.fill == "arange" or spec.shares is not None:
        return st.just(spec.layout)
    found = [x for x in LAYOUTS if possible(x, rank) and not (x in REPEATS and (spec.grad or avoid_repeats))]
    return st.one_of(st.just(spec.layout if spec.layout in found else "contiguous"), st.sampled_from(found))


@st.composite
def forms(draw: st.DrawFn, micrograph: type[Micrograph]) -> Form:
    strata = tuple((dim, draw(st.sampled_from((2, 2, 2, 1, 0)), label=f"stratum of {dim}")) for dim in micrograph.dims)
    avoid = delicate(micrograph)
    given_: list[Given] = []
    for index, spec in enumerate(micrograph.inputs):
        layout = draw(layouts(spec, avoid), label=f"layout of input {index}") if isinstance(spec, Tensor) else "contiguous"
        given_.append(Given(layout))
    given_ = _aliased(draw, micrograph, given_)
    allowed = [str(d)[6:] for d in _dtypes(micrograph)] if not avoid else []
    dtype = draw(st.sampled_from(["", *allowed]), label="dtype")
    free = unbackable(micrograph)
    unbacked = draw(st.sampled_from(((), (), free, free[:1])), label="unbacked") if free else ()
    strata = tuple((dim, 2 if dim in unbacked else s) for dim, s in strata)
    return Form(0, strata, tuple(given_), dtype, unbacked=unbacked)


def unbackable(micrograph: type[Micrograph]) -> tuple[str, ...]:
    """The dims whose size the contract leaves open: marked dynamic, or symbolic once they changed."""
    capture = micrograph.contract.capture
    return tuple(dim for dim in micrograph.dims if dim in capture.dynamic or capture.recompiles.get(dim) == 1)


def _dtypes(micrograph: type[Micrograph]) -> list[torch.dtype]:
    allowed = [{*spec.dtypes} for spec in micrograph.inputs if isinstance(spec, Tensor) and spec.dtypes]
    return sorted(set.intersection(*allowed), key=str) if allowed else []


def _aliased(draw: st.DrawFn, micrograph: type[Micrograph], given_: list[Given]) -> list[Given]:
    """Perhaps let one input be another, or lie in its storage."""
    pairs = [
        (one, other)
        for other, b in enumerate(micrograph.inputs)
        for one, a in enumerate(micrograph.inputs[:other])
        if isinstance(a, Tensor)
        and isinstance(b, Tensor)
        and a.dtype == b.dtype
        and a.fill == b.fill
        and a.dtypes == b.dtypes
        and not (a.grad or b.grad)
        and a.shares is None
        and b.shares is None
        and a.names() == b.names()
    ]
    if not pairs or draw(st.sampled_from((False, False, True)), label="aliasing") is False:
        return given_
    one, other = draw(st.sampled_from(pairs), label="alias")
    given_ = list(given_)
    same = draw(st.booleans(), label="the same tensor")
    given_[other] = Given(given_[one].layout, shares=one, same=same)
    return given_


def pool(micrograph: type[Micrograph], count: int, number: int) -> list[Form]:
    """`count` forms, simplest first; the same for the same number."""
    found = {plain(micrograph)}

    @seed(number)
    @settings(max_examples=8 * count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(forms(micrograph))
    def collect(form: Form) -> None:
        found.add(form)

    collect()
    rest = sorted(found - {plain(micrograph)}, key=repr)
    random.Random(number).shuffle(rest)
    return [plain(micrograph), *sorted(rest[: count - 1], key=lambda form: form.cost)]


# ----------------------------------------------------------------------------------------------- calls


@st.composite
def calls(draw: st.DrawFn, micrograph: type[Micrograph], form: Form, fixed: tuple[Mapping[str, int], ...] = ()) -> Call:
    """Sizes and values that a program compiled for this form must serve. `fixed`: the choices for dims that a graph cannot have
    symbolic, where each costs a compile."""
    allowed = sizes_for(micrograph, tuple(d for d, s in form.strata if s == 2))
    sizes = st.one_of(st.sampled_from(allowed), st.integers(2, min(40, allowed[-1])))
    any_size = st.one_of(sizes, st.sampled_from((1, 0)))
    given_sizes = draw(st.sampled_from(fixed), label="sizes of fixed dims") if fixed else {}
    dims = {
        d: s if s < 2 else given_sizes[d] if d in given_sizes else draw(any_size if d in form.unbacked else sizes, label=f"size of {d}")
        for d, s in form.strata
    }
    return Call(dims, _values(draw, micrograph, form.given), form.dtype, draw(st.integers(0, 99), label="seed"))


@cache
def sizes_for(micrograph: type[Micrograph], free: tuple[str, ...]) -> list[int]:
    """The sizes that these dims may have together: a dim may stand in one shape many times."""
    specs = [spec for spec in micrograph.inputs if isinstance(spec, Tensor)]

    def fits(size: int) -> bool:
        dims = {**micrograph.dims, **dict.fromkeys(free, size)}
        return size <= LARGEST.get(len(free), 17) and all(math.prod(spec.sizes(dims)) <= ELEMENTS for spec in specs)

    return [size for size in SIZES if fits(size)] or [2]


def fixed_sizes(micrograph: type[Micrograph], dims: tuple[str, ...], count: int, number: int) -> tuple[dict[str, int], ...]:
    """`count` choices of sizes for dims that cannot be symbolic: those that forms are compiled with, and others each round."""
    if not dims:
        return ()
    first = trigger(micrograph, plain(micrograph)).dims
    allowed = sizes_for(micrograph, tuple(micrograph.dims))
    others = [{d: allowed[(count * number + step + 5 * place) % len(allowed)] for place, d in enumerate(dims)} for step in range(count - 1)]
    return ({d: max(first[d], 2) for d in dims}, *others)


def _values(draw: st.DrawFn, micrograph: type[Micrograph], given_: tuple[Given, ...]) -> tuple[Given, ...]:
    avoid, made = delicate(micrograph), []
    for index, (spec, one) in enumerate(zip(micrograph.inputs, given_, strict=True)):
        known = () if isinstance(spec, Scalar) else value_kinds(spec, avoid)
        # Half of all inputs are plain, so that one odd input meets plain ones.
        kinds = st.one_of(st.just("as declared"), st.sampled_from(known)) if known else st.just("as declared")
        made.append(replace(one, values=draw(kinds, label=f"values of input {index}")))
    return tuple(made)


def value_kinds(spec: Tensor, avoid_ties: bool) -> tuple[str, ...]:
    if spec.fill != "normal" or spec.dtype in (torch.bool,) or spec.shares is not None:
        return ()
    if not spec.dtype.is_floating_point:
        return () if avoid_ties or spec.dtype.is_complex else INTEGERS
    return ("as declared", "large") if avoid_ties else VALUES


def trigger(micrograph: type[Micrograph], form: Form) -> Call:
    """The call that a form is compiled with: always the same, so that a failure is this call and one more. No two dims have
    the same size, or a compiler may take them for one."""
    dims, taken = {}, set()
    for dim, s in form.strata:
        size = s if s < 2 else max(micrograph.dims[dim], 2)
        while s == 2 and size in taken:
            size += 1
        dims[dim] = size
        taken.add(size)
    return Call(dims, form.given, form.dtype, seed=100)


def example_of(micrograph: type[Micrograph], form: Form, call: Call, dynamic: tuple[str, ...], source: str = "") -> Example:
    first = (trigger(micrograph, form),) if form.dynamic else ()
    marks = dynamic if form.dynamic else ()
    return Example(micrograph.name(), (*first, call), marks, source, unbacked=form.unbacked if form.dynamic else ())
