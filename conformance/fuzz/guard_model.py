"""A model of when Dynamo must capture again.

It says of each call *yes*, *no* or *maybe*: static at first; a size or a number that changed is symbolic from the next capture
on; properties that are no sizes are guarded as they are. `Cached` is the same for the caches on disk.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from conformance.fuzz.example import Call
from conformance.inputs import Tensor
from conformance.layouts import place
from conformance.micrograph import Micrograph
from conformance.verdict import Kind

UNPROMISED = (
    "strided",
    "expanded",
)  # strides that are no products of sizes: when they are guarded as numbers is not promised
DYNAMIC = "dynamic"


@dataclass(frozen=True)
class Guarded:
    """What one capture is good for."""

    kind: tuple[Any, ...]  # dtype, mode, layouts: it must be the same
    sizes: tuple[tuple[str, int | float | str], ...]  # it must be the same, or any size above one

    def takes(self, call: Call) -> bool:
        known = numbers_of(call)
        fits = all(_any_size(known[name]) if size == DYNAMIC else _same(known[name], size) for name, size in self.sizes)
        return self.kind == kind_of(call) and fits

    @property
    def program(self) -> tuple[Any, ...]:
        """Captures that differ in this are different programs to every cache."""
        return (self.kind[0], self.kind[2], self.sizes)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _any_size(number: float) -> bool:
    """What a symbol stands for. Whether a float becomes one depends on what is done with it, and is not promised."""
    return isinstance(number, int) and number > 1


def kind_of(call: Call) -> tuple[Any, ...]:
    return (call.dtype, call.mode, tuple(given.layout for given in call.given))


def numbers_of(call: Call) -> dict[str, int | float]:
    return {**call.dims, **{f"input {index}": value for index, value in call.scalars}}


@dataclass
class Model:
    """Dynamo's promise: static at first; a dim or a number that changed is symbolic from the next capture on, one that is marked
    from the first; 0 and 1 are special; properties that are no sizes are guarded as they are; at most `limit` captures, then
    eager. Where the contract promises nothing of recompiles (`loose`), only what was served before is known to be served."""

    micrograph: type[Micrograph]
    limit: int = 8
    loose: bool = False
    captured: list[Guarded] = field(default_factory=list)
    served: set[tuple[Any, ...]] = field(default_factory=set)
    sizes: dict[str, int | float | str] = field(default_factory=dict)
    layouts: set[tuple[str, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.sizes |= dict.fromkeys(self.micrograph.contract.capture.dynamic, DYNAMIC)

    def expects(self, call: Call) -> str:
        if self.exact(call) in self.served:
            return "no"
        if self.loose or any(layout in UNPROMISED for layout in kind_of(call)[2]):
            return "maybe"
        if any(capture.takes(call) for capture in self.captured) or self.exhausted():
            return "no"
        return "maybe" if self._doubtful(call) else "yes"

    def exhausted(self) -> bool:
        return len(self.captured) >= self.limit

    def _doubtful(self, call: Call) -> bool:
        numbers = dict(numbers_of(call))
        changed = [
            name for name, value in numbers.items() if isinstance(value, float) and self.sizes.get(name) == DYNAMIC
        ]
        # What a number was guarded for (its sign, its type) depends on what is done with it. Its answer must be right all the same.
        changed += [name for name, value in numbers.items() if self._other_kind(name, value)]
        layouts = kind_of(call)[2]
        # Strides that changed once may have become symbolic, and what then fits is not promised. At the first change they are not.
        others = self.layouts - {layouts}
        moved = len(others) > 1 or (layouts in self.layouts and bool(others))
        first = len(others) == 1 and not self._other_strides(call, next(iter(others)))
        return bool(changed) or moved or first

    def _other_kind(self, name: str, value: float) -> bool:
        """A number below two, or of another type than before: not what a symbol stands for, and perhaps not guarded as it is."""
        before = self.sizes.get(name, value)
        if name in self.micrograph.dims:
            return False
        if isinstance(before, str):
            return not _any_size(value)
        return type(before) is not type(value) or (before > 0) != (value > 0) or value in (0, 1)

    def _other_strides(self, call: Call, layouts: tuple[str, ...]) -> bool:
        """Do the inputs lie otherwise than they would in these layouts? Strides of dims of size one say nothing."""
        sizes = {**self.micrograph.dims, **call.dims}
        for spec, given, layout in zip(self.micrograph.inputs, call.given, layouts, strict=True):
            if isinstance(spec, Tensor):
                shape = spec.sizes(sizes)
                pairs = zip(shape, place(given.layout, shape)[0], place(layout, shape)[0], strict=True)
                if 0 not in shape and any(size > 1 and one != other for size, one, other in pairs):
                    return True
        return False

    def saw(self, call: Call, captures: int) -> Guarded | None:
        """The new capture, if there was one."""
        self.served.add(self.exact(call))
        self.layouts.add(kind_of(call)[2])
        if not captures:
            return None
        for name, value in numbers_of(call).items():
            self.sizes[name] = value if _same(self.sizes.get(name, value), value) else DYNAMIC
        known = numbers_of(call).items()
        sizes = tuple(
            (name, DYNAMIC if self.sizes[name] == DYNAMIC and _any_size(value) else value) for name, value in known
        )
        self.captured.append(Guarded(kind_of(call), sizes))
        return self.captured[-1]

    def exact(self, call: Call) -> tuple[Any, ...]:
        return (
            *kind_of(call),
            tuple(sorted((name, str(type(value)), value) for name, value in numbers_of(call).items())),
        )


@dataclass
class Cached:
    """What the caches on disk hold. They start empty, and outlive Dynamo's own memory."""

    promised: bool
    captures: set[Guarded] = field(default_factory=set)

    def judge(self, capture: Guarded, counted: dict[str, int]) -> tuple[Kind, str] | None:
        known, programs = capture in self.captures, {other.program for other in self.captures}
        self.captures.add(capture)
        counts = Counter(counted)  # a compiler without these caches counts nothing
        missed, bypassed = counts["fx_miss"] + counts["aot_miss"], counts["fx_bypass"] + counts["aot_bypass"]
        # An entry for training is written when the backward graph was compiled, which these calls may never ask for.
        if not self.promised or bypassed or capture.kind[1] == "grad":
            return None
        if known and missed:
            return Kind.CACHE_MISS, f"compiled before, and not found in the caches: {counted}"
        if capture.program not in programs and counts["fx_hit"]:
            return Kind.STALE_CACHE, f"never compiled before, and found in the caches: {counted}"
        return None


def predictable(micrograph: type[Micrograph]) -> bool:
    capture = micrograph.contract.capture
    return capture.graphs == 1 and capture.breaks == 0 and (1 in capture.recompiles.values() or bool(capture.dynamic))
