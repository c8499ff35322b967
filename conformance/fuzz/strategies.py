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
from hypothesis import strategies as st

from conformance import oracle
from conformance.fuzz.example import INTEGERS, VALUES, Call, Example, Given
from conformance.fuzz.graph import Graph
from conformance.inputs import Tensor
from conformance.layouts import LAYOUTS, REPEATS, possible
from conformance.micrograph import Micrograph
from conformance.torch_seam import TorchDispatchMode

# Ends, primes, powers of two and their neighbours: what vector widths, tiles and unrolled loops stumble over.
SIZES = (
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    13,
    15,
    16,
    17,
    23,
    31,
    32,
    33,
    47,
    63,
    64,
    65,
    97,
    127,
    128,
    129,
    255,
    257,
    511,
    1023,
    1025,
)
LARGEST = {0: 1025, 1: 1025, 2: 257, 3: 65, 4: 33}  # by the number of dims that vary
ELEMENTS = 2**17  # of one input; what a graph makes of it may have a dim more
# Which of equal elements is taken is not specified.
AMBIGUOUS = {
    "aten.topk",
    "aten.sort",
    "aten.argmax",
    "aten.argmin",
    "aten.max",
    "aten.min",
    "aten.median",
    "aten.kthvalue",
    "aten.mode",
}


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
        odd = (
            sum(stratum != 2 for _, stratum in self.strata) + bool(self.dtype) + (not self.dynamic) + len(self.unbacked)
        )
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
    given_ = tuple(
        Given(layout=spec.layout if isinstance(spec, Tensor) else "contiguous") for spec in micrograph.inputs
    )
    return Form(0, tuple((dim, stratum(size)) for dim, size in micrograph.dims.items()), given_)


def stratum(size: int) -> int:
    return min(size, 2)


def layouts(spec: Tensor, distinct: bool) -> list[str]:
    """`distinct`: no two of its elements may lie in one place."""
    if spec.fill == "arange" or spec.shares is not None:
        return [spec.layout]
    return [x for x in LAYOUTS if possible(x, len(spec.names())) and not (x in REPEATS and (spec.grad or distinct))]


@cache
def written(micrograph: type[Micrograph]) -> frozenset[int]:
    """The inputs that eager writes to."""
    module, inputs = micrograph.build(), micrograph.example(0)
    outcome = oracle.run(module, oracle.clone_inputs(inputs), module, calls=micrograph.steps)
    return frozenset() if outcome.error is not None else frozenset(oracle.mutated(outcome, inputs))


def deviations(micrograph: type[Micrograph]) -> list[Form]:
    """The forms that are plain but for one thing."""
    start = plain(micrograph)
    avoid = delicate(micrograph)
    found = [
        start._with(index, Given(layout))
        for index, spec in enumerate(micrograph.inputs)
        if isinstance(spec, Tensor)
        for layout in layouts(spec, avoid or index in written(micrograph))  # type: ignore[arg-type]
    ]
    found += [
        start._with(other, Given(start.given[one].layout, shares=one, same=same))
        for one, other in aliases(micrograph)
        for same in (False, True)
    ]
    for index, (dim, _) in enumerate(start.strata):
        found += [replace(start, strata=(*start.strata[:index], (dim, s), *start.strata[index + 1 :])) for s in (1, 0)]
    found += [replace(start, dtype=str(dtype)[6:]) for dtype in _dtypes(micrograph) if not avoid]
    if free := unbackable(micrograph):
        found += [_unbacked(start, dims) for dims in {free, free[:1]}]
    return [form for form in dict.fromkeys(found) if form != start]


def combination(micrograph: type[Micrograph], rng: random.Random) -> Form:
    """A form that deviates in several things at once."""
    start, ways = plain(micrograph), deviations(micrograph)
    form = start
    for way in rng.sample(ways, min(len(ways), rng.choice((2, 2, 3, 4)))):
        changed = {name: getattr(way, name) for name in ("dtype", "unbacked") if getattr(way, name)}
        for name in ("strata", "given"):  # part by part: two inputs may each have a layout of its own
            parts = zip(getattr(start, name), getattr(form, name), getattr(way, name), strict=True)
            changed[name] = tuple(new if new != old else kept for old, kept, new in parts)
        form = replace(form, **changed)
    return _unbacked(_placed(form), form.unbacked)


def _placed(form: Form) -> Form:
    """An input that lies in another's storage lies as that one does."""
    given_ = form.given
    return replace(
        form, given=tuple(g if g.shares is None else replace(g, layout=given_[g.shares].layout) for g in given_)
    )


def _unbacked(form: Form, dims: tuple[str, ...]) -> Form:
    return replace(form, strata=tuple((dim, 2 if dim in dims else s) for dim, s in form.strata), unbacked=dims)


def unbackable(micrograph: type[Micrograph]) -> tuple[str, ...]:
    """The dims whose size the contract leaves open: marked dynamic, or symbolic once they changed."""
    capture = micrograph.contract.capture
    return tuple(dim for dim in micrograph.dims if dim in capture.dynamic or capture.recompiles.get(dim) == 1)


def _dtypes(micrograph: type[Micrograph]) -> list[torch.dtype]:
    allowed = [{*spec.dtypes} for spec in micrograph.inputs if isinstance(spec, Tensor) and spec.dtypes]
    return sorted(set.intersection(*allowed), key=str) if allowed else []


def aliases(micrograph: type[Micrograph]) -> list[tuple[int, int]]:
    """Pairs of inputs of which the later may be the earlier, or lie in its storage."""
    return [
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


def pool(micrograph: type[Micrograph], count: int, number: int) -> list[Form]:
    """`count` forms, simplest first; the same for the same number. Every second one is plain but for one thing, and all such
    things have their turn, round by round; the others deviate in several at once."""
    ways, start = deviations(micrograph), plain(micrograph)
    random.Random(micrograph.name()).shuffle(ways)
    rng = random.Random(f"{micrograph.name()} {number}")
    singles = (count if number % 2 else count - 1) // 2
    turn = (number * (count - 1) + 1) // 2
    found = {start, *(ways[(turn + step) % len(ways)] for step in range(singles) if ways)}
    for _ in range(4 * count):
        if len(found) < count and ways:
            found.add(combination(micrograph, rng))
    return sorted(found, key=lambda form: (form.cost, repr(form)))


# ----------------------------------------------------------------------------------------------- calls


@st.composite
def calls(draw: st.DrawFn, micrograph: type[Micrograph], form: Form, fixed: tuple[Mapping[str, int], ...] = ()) -> Call:
    """Sizes and values that a program compiled for this form must serve. `fixed`: the choices for dims that a graph cannot have
    symbolic, where each costs a compile."""
    allowed = sizes_for(micrograph, tuple(d for d, s in form.strata if s == 2))  # type: ignore[arg-type]
    sizes = st.one_of(st.sampled_from(allowed), st.integers(2, min(40, allowed[-1])))
    any_size = st.one_of(sizes, st.sampled_from((1, 0)))
    given_sizes = draw(st.sampled_from(fixed), label="sizes of fixed dims") if fixed else {}
    dims = {
        d: s
        if s < 2
        else given_sizes[d]
        if d in given_sizes
        else draw(any_size if d in form.unbacked else sizes, label=f"size of {d}")
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


def fixed_sizes(
    micrograph: type[Micrograph], dims: tuple[str, ...], count: int, number: int
) -> tuple[dict[str, int], ...]:
    """`count` choices of sizes for dims that cannot be symbolic: those that forms are compiled with, and others each round."""
    if not dims:
        return ()
    first = trigger(micrograph, plain(micrograph)).dims
    allowed = sizes_for(micrograph, tuple(micrograph.dims))  # type: ignore[arg-type]
    others = [
        {d: allowed[(count * number + step + 5 * place) % len(allowed)] for place, d in enumerate(dims)}
        for step in range(count - 1)
    ]
    return ({d: max(first[d], 2) for d in dims}, *others)


def _values(draw: st.DrawFn, micrograph: type[Micrograph], given_: tuple[Given, ...]) -> tuple[Given, ...]:
    avoid, made = delicate(micrograph), []
    for index, (spec, one) in enumerate(zip(micrograph.inputs, given_, strict=True)):
        known = value_kinds(spec, avoid) if isinstance(spec, Tensor) else ()
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


def example_of(
    micrograph: type[Micrograph], form: Form, call: Call, dynamic: tuple[str, ...], graph: Graph | None = None
) -> Example:
    first = (trigger(micrograph, form),) if form.dynamic else ()
    marks = dynamic if form.dynamic else ()
    return Example(micrograph.name(), (*first, call), marks, graph, unbacked=form.unbacked if form.dynamic else ())
