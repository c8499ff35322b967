"""One case that the fuzzer ran, as plain data: from it come the inputs, the repro, and a micrograph of the deterministic lane."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from conformance import oracle, paths
from conformance.contract import Capture, Contract, Runtime
from conformance.errors import UsageError, unknown
from conformance.inputs import Scalar, Tensor, Value, make_tensor
from conformance.layouts import LAYOUTS, place
from conformance.library import load
from conformance.micrograph import Micrograph

SCHEMA = "conformance/example/1"

# How to fill an input whose spec says `normal`; simplest first.
VALUES = ("as declared", "ties", "zeros", "large", "tiny", "huge", "inf", "nan", "mixed")
INTEGERS = ("as declared", "zeros", "extreme")


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
    stance: str = ""  # of torch.compiler.set_stance, for this call; "restart": Dynamo forgets, as in a new process, and caches do not
    scalars: tuple[tuple[int, float], ...] = ()  # inputs that are numbers, where they are not as declared

    def inputs(self, micrograph: type[Micrograph], dims: Mapping[str, int] | None = None, device: str = "cpu") -> tuple[Any, ...]:
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

    def _tensor(self, spec: Tensor, given: Given, index: int, sizes: Mapping[str, int], made: list[Any], device: str) -> torch.Tensor:
        """Laid out on the device itself: a copy of a tensor to it would be dense."""
        shape = spec.sizes(sizes)
        strides, offset, count = place(given.layout, shape)
        shares = spec.shares if spec.shares is not None else given.shares
        if shares is not None:
            storage = made[shares].untyped_storage()
            count_there = storage.nbytes() // made[shares].element_size()
            base = torch.empty(0, dtype=made[shares].dtype, device=made[shares].device).set_(storage, 0, (count_there,), (1,))
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
        extremes = torch.tensor([torch.iinfo(made.dtype).min, torch.iinfo(made.dtype).max, 0, 1, -1 if made.dtype.is_signed else 2])
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
    source: str = ""  # of a generated micrograph
    mutates: tuple[int, ...] | None = None
    about: str = "answers"  # or "guards": what is wrong is when it captured again; "guards, compiled": and compiled
    unbacked: tuple[str, ...] = ()  # dims whose size the compiler may not even look at
    limit: int = 8  # captures before Dynamo gives up, in a sequence about guards

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, data: Any, where: str = "the example") -> Example:
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise UsageError(f"{where} is not an example: expected schema {SCHEMA!r}")
        try:
            calls = tuple(_call(c) for c in data["calls"])
            mutates = None if data["mutates"] is None else tuple(data["mutates"])
            example = cls(
                data["micrograph"],
                calls,
                tuple(data["dynamic"]),
                data["source"],
                mutates,
                data.get("about", "answers"),
                tuple(data.get("unbacked", ())),
                int(data.get("limit", 8)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{where} is damaged: {type(error).__name__}: {error}") from None
        for layout in {g.layout for c in calls for g in c.given}:
            if layout not in LAYOUTS:
                raise unknown("layout", layout, LAYOUTS)
        return example

    @property
    def id(self) -> str:
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:8]

    def base(self) -> type[Micrograph]:
        if self.source:
            return generated(self.source)
        file = paths.micrographs() / f"{self.micrograph.split('.')[0]}.py"
        library = load(file if file.exists() else paths.micrographs())
        if self.micrograph not in library:
            raise unknown("micrograph", self.micrograph, library)
        return library[self.micrograph]

    def as_micrograph(self, base: type[Micrograph] | None = None, module: str = "conformance_micrographs.fuzz") -> type[Micrograph]:
        """A micrograph like any other, whose inputs are those of the calls: every backend and every stage can have it."""
        return as_micrograph(self, base or self.base(), module)


def _call(data: Mapping[str, Any]) -> Call:
    return Call(
        dict(data["dims"]),
        tuple(Given(**given) for given in data["given"]),
        str(data["dtype"]),
        int(data["seed"]),
        str(data.get("mode", "")),
        str(data.get("stance", "")),
        tuple((int(index), value) for index, value in data.get("scalars", ())),
    )


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


# ---------------------------------------------------------------------------------- generated micrographs


@cache
def generated(source: str) -> type[Micrograph]:
    """The micrograph that a source text defines. It is kept in a file, since a class must be found again by its file."""
    from conformance.fuzz.home import home

    name = re.search(r"^class (\w+)\(Micrograph\)", source, re.M)
    if name is None:
        raise UsageError("the example's source has no Micrograph class")
    folder = home() / "graphs"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"generated_{hashlib.sha256(source.encode()).hexdigest()[:10]}.py"
    if not file.exists():
        file.write_text(source)
    return next(iter(load(file).values()))


def read(path: Path) -> Example:
    try:
        return Example.from_json(json.loads(path.read_text()), str(path))
    except (OSError, json.JSONDecodeError) as error:
        raise UsageError(f"{path} cannot be read as an example: {error}") from None
