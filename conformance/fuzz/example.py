"""One case that the fuzzer ran, as plain data: from it come the inputs, the repro, and a micrograph of the suite.

Files of examples are anybody's: they name micrographs of the library, ops of the tables and numbers, and nothing in
them is run or taken for a path.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import torch

from conformance import oracle, paths
from conformance.contract import Capture, Contract, Runtime
from conformance.errors import UsageError, unknown
from conformance.files import mismatch, read_json
from conformance.fuzz.graph import Graph, micrograph_of
from conformance.inputs import Scalar, Tensor, Value, make_tensor
from conformance.layouts import LAYOUTS, place, possible
from conformance.library import load
from conformance.micrograph import Micrograph

SCHEMA = "conformance/example/2"
OLD = "conformance/example/1"  # held generated graphs as source text

# How to fill an input whose spec says `normal`; simplest first.
VALUES = ("as declared", "ties", "zeros", "large", "tiny", "huge", "inf", "nan", "mixed")
INTEGERS = ("as declared", "zeros", "extreme")
DTYPES = frozenset(name for name, value in vars(torch).items() if isinstance(value, torch.dtype))
MODES = ("", "grad", "autocast", "inference")
STANCES = ("force_eager", "eager_on_recompile", "fail_on_recompile")
RESTART = "restart"
ABOUT = ("answers", "guards", "guards, compiled")
# What may stand in a file.
MAX_CALLS = 1_000
MAX_SIZE = 1 << 20  # of a dim
MAX_ELEMENTS = 1 << 24  # of an input
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


@dataclass(frozen=True)
class Given:
    """How one input of one call was made."""

    layout: str = "contiguous"
    values: str = "as declared"
    shares: int | None = None  # an earlier input whose storage this one uses
    same: bool = False  # it is that very tensor


@dataclass(frozen=True)
class Call:
    """The inputs of one call."""

    dims: Mapping[str, int]
    given: tuple[Given, ...]
    dtype: str = ""  # of all inputs that allow it, and of the module; "": as declared
    seed: int = 0
    mode: str = ""  # what surrounds the call: grad, autocast, inference
    # Of torch.compiler.set_stance, for this call. "restart": Dynamo forgets, as in a new process, and caches do not.
    stance: str = ""
    scalars: tuple[tuple[int, int | float], ...] = ()  # inputs that are numbers, where they are not as declared

    def inputs(
        self, micrograph: type[Micrograph], dims: Mapping[str, int] | None = None, device: str = "cpu"
    ) -> tuple[Any, ...]:
        sizes = {**micrograph.dims, **self.dims, **(dims or {})}
        made: list[Any] = []
        numbers = dict(self.scalars)
        for index, (spec, given) in enumerate(zip(micrograph.inputs, self.given, strict=True)):
            if isinstance(spec, Scalar):
                made.append(sizes[spec.value] if isinstance(spec.value, str) else numbers.get(index, spec.value))
            elif isinstance(spec, Value):
                raise UsageError(f"input {index} of {micrograph.name()} is a Python value, which is not drawn")
            elif given.same and given.shares is not None:
                made.append(made[given.shares])
            else:
                made.append(self._tensor(spec, given, index, sizes, made, device))
        for value, spec in zip(made, micrograph.inputs, strict=True):
            if isinstance(spec, Tensor) and spec.grad:
                value.requires_grad_(True)
        return tuple(made)

    def _tensor(
        self, spec: Tensor, given: Given, index: int, sizes: Mapping[str, int], made: list[Any], device: str
    ) -> torch.Tensor:
        """Laid out on the device itself: a copy of a tensor to it would be dense."""
        shape = spec.sizes(sizes)
        strides, offset, count = place(given.layout, shape)
        shares = spec.shares if spec.shares is not None else given.shares
        if shares is not None:
            storage = made[shares].untyped_storage()
            count_there = storage.nbytes() // made[shares].element_size()
            base = torch.empty(0, dtype=made[shares].dtype, device=made[shares].device).set_(
                storage, 0, (count_there,), (1,)
            )
            if base.numel() < count:
                raise UsageError(f"input {index} does not fit into the storage of input {shares}")
        else:
            dtype = getattr(torch, self.dtype) if self.dtype and spec.dtypes else spec.dtype
            generator = torch.Generator().manual_seed(1000 * self.seed + index)
            base = fill(replace(spec, dtype=dtype), given.values, count, sizes, generator).to(device)
        return torch.as_strided(base, shape, strides, offset).detach()


def fill(spec: Tensor, values: str, count: int, dims: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
    """The elements of a storage."""
    plain = replace(spec, shape=str(count), layout="contiguous", grad=False)
    if values in ("ties", "zeros"):
        return make_tensor(replace(plain, fill=values), dims, generator)
    made = make_tensor(plain, dims, generator)
    if values == "as declared" or not made.numel():
        return made
    if not made.is_floating_point():
        extremes = torch.tensor(
            [torch.iinfo(made.dtype).min, torch.iinfo(made.dtype).max, 0, 1, -1 if made.dtype.is_signed else 2]
        )
        return extremes[torch.randint(0, 5, (count,), generator=generator)].to(made.dtype)
    limits = torch.finfo(made.dtype)
    if values in SCALES:
        return (made.double() * SCALES[values](limits)).to(made.dtype)
    ends = [torch.inf, -torch.inf]
    odd = {"inf": ends, "nan": [torch.nan], "mixed": [*ends, torch.nan, 0.0, -0.0, limits.max, limits.tiny / 2]}[values]
    chosen = torch.tensor(odd, dtype=torch.float64)[torch.randint(0, len(odd), (count,), generator=generator)]
    return torch.where(torch.rand(count, generator=generator) < 0.4, chosen.to(made.dtype), made)


SCALES = {
    "large": lambda limits: min(1e4, limits.max**0.5),
    "tiny": lambda limits: limits.tiny / 4,
    "huge": lambda limits: limits.max**0.5 / 4,  # squares stay finite, sums of many of them do not
}


@dataclass(frozen=True)
class Example:
    """Calls of one compiled micrograph, in order; dims marked dynamic before each."""

    micrograph: str  # by name in the library; for a generated one, the name of its class
    calls: tuple[Call, ...]
    dynamic: tuple[str, ...] = ()
    graph: Graph | None = None  # of a generated micrograph
    mutates: tuple[int, ...] | None = None
    about: str = "answers"  # or "guards": what is wrong is when it captured again; "guards, compiled": and compiled
    unbacked: tuple[str, ...] = ()  # dims whose size the compiler may not even look at
    limit: int = 8  # captures before Dynamo gives up, in a sequence about guards

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, data: Any, where: str = "the example") -> Example:
        """The example that a file's data describes, checked as far as that goes without its micrograph."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema == OLD:
            raise UsageError(
                f"{where} was written by an older suite ({OLD}), which kept graphs as code; this one does not run code"
                " from files: find it again with `conformance fuzz`, then `conformance pin` it"
            )
        if schema != SCHEMA:
            raise UsageError(f"{where} is not an example: expected schema {SCHEMA!r}")
        if problem := mismatch(data, cls):
            raise UsageError(f"{where} is damaged: {problem}")
        example = msgspec.convert(data, cls)
        if problem := _problem(example):
            raise UsageError(f"{where} is damaged: {problem}")
        return example

    @property
    def id(self) -> str:
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:8]

    @property
    def source(self) -> str:
        """The text of a generated micrograph; empty for one of the library."""
        return self.graph.source() if self.graph is not None else ""

    def base(self) -> type[Micrograph]:
        """The micrograph that is called."""
        found = micrograph_of(self.graph) if self.graph is not None else _from_library(self.micrograph)
        if found.name() != self.micrograph:
            raise UsageError(f"the example is of {self.micrograph!r}, and its graph is {found.name()}")
        if problem := _misfit(self, found):
            raise UsageError(f"the example does not fit {self.micrograph}: {problem}")
        return found

    def as_micrograph(
        self, base: type[Micrograph] | None = None, module: str = "conformance_micrographs.fuzz"
    ) -> type[Micrograph]:
        """A micrograph like any other, whose inputs are those of the calls: for every backend and every stage."""
        return as_micrograph(self, base or self.base(), module)


def _from_library(name: str) -> type[Micrograph]:
    """A micrograph that ships with the suite. Its file is looked up among those there are: a name is no path."""
    root = paths.micrographs()
    files = {".".join(file.relative_to(root).with_suffix("").parts): file for file in root.rglob("[!_]*.py")}
    file = files.get(name.rpartition(".")[0])
    if file is None or file.stem == "pinned":
        raise unknown("micrograph", name, files)
    library = load(root) if file.parent != root else load(file)
    if name not in library:
        raise unknown("micrograph", name, library)
    return library[name]


def _problem(example: Example) -> str:
    """What no example may have; empty if there is nothing."""
    if example.graph is not None:
        example.graph.check()
    calls = example.calls
    given = [one for call in calls for one in call.given]
    words: list[tuple[str, Any, Any]] = [
        *(("layout", one.layout, LAYOUTS) for one in given),
        *(("values", one.values, (*VALUES, *INTEGERS)) for one in given),
        *(("dtype", call.dtype, ("", *DTYPES)) for call in calls),
        *(("mode", call.mode, MODES) for call in calls),
        *(("stance", call.stance, ("", RESTART, *STANCES)) for call in calls),
        ("about", example.about, ABOUT),
    ]
    for what, word, known in words:
        if word not in known:
            return str(unknown(what, word[:80], [name for name in known if name]))
    checks = {
        f"{example.micrograph[:80]!r} is not the name of a micrograph": _NAME.fullmatch(example.micrograph),
        f"it has {len(calls)} calls": 0 < len(calls) <= MAX_CALLS,
        "a size is negative or too large": all(0 <= n <= MAX_SIZE for call in calls for n in call.dims.values()),
        "a seed is negative or too large": all(0 <= call.seed < 1 << 40 for call in calls),
        "a number is not finite": all(math.isfinite(number) for call in calls for _, number in call.scalars),
        f"a limit of {example.limit} captures": 0 < example.limit <= 10_000,
    }
    return next((text for text, fine in checks.items() if not fine), "")


def _misfit(example: Example, base: type[Micrograph]) -> str:
    """What the micrograph cannot be called with; empty if there is nothing."""
    count, dims = len(base.inputs), {*base.dims}
    for name in {*example.dynamic, *example.unbacked, *(dim for call in example.calls for dim in call.dims)} - dims:
        return str(unknown("dim", name[:80], dims))
    if any(not 0 <= index < count for index in example.mutates or ()):
        return f"it has {count} inputs"
    for call in example.calls:
        if len(call.given) != count:
            return f"a call gives {len(call.given)} inputs, and it takes {count}"
        if any(one.shares is not None and not 0 <= one.shares < place for place, one in enumerate(call.given)):
            return "an input can lie only in the storage of an earlier one"
        if any(not 0 <= index < count or not isinstance(base.inputs[index], Scalar) for index, _ in call.scalars):
            return "a number is given for an input that is none"
        sizes = {**base.dims, **call.dims}
        for spec, one in zip(base.inputs, call.given, strict=True):
            if isinstance(spec, Tensor) and math.prod(spec.sizes(sizes)) > MAX_ELEMENTS:
                return f"an input has more than {MAX_ELEMENTS:,} elements"
            if isinstance(spec, Tensor) and not possible(one.layout, len(spec.names())):
                return f"the layout {one.layout} is not for {len(spec.names())} dims"
    return ""


def as_micrograph(example: Example, base: type[Micrograph], module: str) -> type[Micrograph]:
    class Fuzzed(base):  # type: ignore[valid-type,misc]
        @classmethod
        def build(cls, seed: int = 0) -> Micrograph:
            made = super().build(seed)
            return made.to(getattr(torch, example.calls[0].dtype)) if example.calls[0].dtype else made

        @classmethod
        def example(cls, seed: int = 0, dims: Mapping[str, int] | None = None, device: str = "cpu") -> tuple[Any, ...]:
            """The calls in order, then the last one with other values."""
            index = min(seed, len(example.calls) - 1)
            call = example.calls[index]
            return replace(call, seed=call.seed + seed - index).inputs(base, dims, device)

        @classmethod
        def digest(cls) -> str:
            return hashlib.sha256((base.digest() + example.id).encode()).hexdigest()[:12]

    Fuzzed.dims = {**base.dims, **example.calls[0].dims}
    Fuzzed.__doc__ = base.__doc__
    Fuzzed.__name__ = Fuzzed.__qualname__ = f"{base.__name__}{example.id}"
    Fuzzed.__module__ = module
    Fuzzed.contract = _contract(example, base)
    return Fuzzed


def _contract(example: Example, base: type[Micrograph]) -> Contract:
    """What holds at any size: counts of kernels, matches and recompiles were declared for the micrograph's own."""
    said = base.contract
    mutates = example.mutates if example.mutates is not None else written(example, base)
    runtime = Runtime(mutates=mutates, random=said.runtime.random)
    capture = Capture(said.capture.graphs, said.capture.breaks, dynamic=example.dynamic, unbacked=example.unbacked)
    return Contract(capture=capture, runtime=runtime, cache=said.cache)


def written(example: Example, base: type[Micrograph]) -> tuple[int, ...]:
    """The inputs that eager writes to at the first call."""
    module = base.build()
    if example.calls[0].dtype:
        module = module.to(getattr(torch, example.calls[0].dtype))
    inputs = example.calls[0].inputs(base)
    outcome = oracle.run(module, oracle.clone_inputs(inputs), module, calls=base.steps)
    return () if outcome.error is not None else tuple(oracle.mutated(outcome, inputs))


def read(path: Path) -> Example:
    """The example in a file."""
    return Example.from_json(read_json(path, "the example"), str(path))
