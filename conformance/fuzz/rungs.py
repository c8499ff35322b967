"""Plays programs on the rungs of torch.compile, the cheapest first: what a rung shows need not be sought higher up."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch

from conformance.backends.inductor.seam import seam
from conformance.fuzz import foreign
from conformance.fuzz.observed import difference, outcome, plain
from conformance.fuzz.one_library import one_library
from conformance.fuzz.program import Program, module_of
from conformance.fuzz.seam import seam as names
from conformance.fuzz.watchdog import Hung, limited
from conformance.stage import Stage

Outcome = tuple[str, Any]
# Nothing is taken from a cache of graphs; libraries of C++ kernels are kept by their text.
SETTINGS = {"fx_graph_cache": False, "fallback_random": True}


@dataclass(frozen=True)
class Rung:
    """A backend of torch.compile that goes so far and no further, and the stage that is at fault if it is the first to
    be wrong."""

    name: str
    backend: str
    stage: Stage


RUNGS = {
    rung.name: rung
    for rung in (
        Rung("capture", "eager", Stage.CAPTURE),
        Rung("functionalization", "aot_eager", Stage.DECOMPOSITION),
        Rung("decompositions", "aot_eager_decomp_partition", Stage.DECOMPOSITION),
        Rung("inductor", "inductor", Stage.CODEGEN),
    )
}
ORDER = tuple(RUNGS)


def on(name: str) -> Rung:
    """The rung of this name; a backend and its target, `torch_tensorrt/sm_90`, are a rung of their own."""
    return RUNGS[name] if name in RUNGS else Rung(name, name, Stage.RUNTIME)


class Busy(Exception):
    """A play took too long, and not because it computed: the machine was busy. Nothing can be said of the program."""


def mended() -> bool:
    """Does torch compute? A compile that fails inside a functorch transform can leave its layers on the stack; then eager
    raises as well, whatever is asked. They are taken off."""
    for attempt in (False, True):
        try:
            if attempt and names.has("unwind"):
                names.unwind(0)
            return float((torch.ones(2) + 1).sum()) == 4.0
        except RuntimeError:
            continue
    return False


def processor_seconds() -> float:
    """What this process and those that it waited for have computed."""
    return sum(os.times()[:4])


@dataclass
class Player:
    """Plays programs. `plays` counts them by rung; `patience` is for one play, in seconds."""

    patience: float = 180.0
    plays: dict[str, int] = field(default_factory=dict)
    pieces: int = 0  # that the last play was captured in

    def eager(self, program: Program) -> Outcome | None:
        """What eager gives; None where it contradicts itself, or the program cannot be played at all."""
        first, second = (self._outcome(program, None) for _ in range(2))
        return first if difference(first, second, program.rules.signs) is None else None

    def play(self, program: Program, rung: str, **settings: Any) -> Outcome:
        """What the compiler gives, as far as this rung."""
        self.plays[rung] = self.plays.get(rung, 0) + 1
        with uncached(**settings):
            return self._outcome(program, on(rung).backend)

    def _outcome(self, program: Program, backend: str | None) -> Outcome:
        start = processor_seconds()
        try:
            with surroundings(), limited(self.patience), module_of(program) as module:
                return outcome(module.play, compiler(backend))
        except Hung as hung:
            if processor_seconds() - start < self.patience / 2:
                raise Busy(str(hung)) from None
            return "raised", ("Hung", str(hung))
        finally:
            self.pieces = pieces()
            seam.reset()

    def together(self, programs: Sequence[Program], rung: str) -> list[Outcome] | None:
        """What the compiler gives for all of them in one compile; None where it, or a program, raises."""
        self.plays[rung] = self.plays.get(rung, 0) + len(programs)
        try:
            with ExitStack() as stack:
                stack.enter_context(surroundings())
                stack.enter_context(uncached())
                stack.enter_context(one_library())
                stack.enter_context(limited(2 * self.patience))
                modules = [stack.enter_context(module_of(program)) for program in programs]
                return _in_one_compile(modules, compiler(on(rung).backend))
        except (Exception, Hung):
            return None
        finally:
            self.pieces = pieces()
            seam.reset()


def pieces() -> int:
    """The graphs and the breaks between them since the counters were cleared: 1 where all was captured at once."""
    return int(seam.counters["stats"]["unique_graphs"]) + len(seam.counters["graph_break"])


@contextmanager
def uncached(**settings: Any) -> Iterator[None]:
    """The compiler as programs are played with it."""
    with seam.config.patch({**SETTINGS, **settings}), seam.functorch_config.patch(enable_autograd_cache=False):
        yield


def compiler(backend: str | None) -> Callable[[Any], Any]:
    """What programs get as `compile`: torch.compile, another backend of the suite, or nothing at all."""
    if backend is None:
        return lambda fn: fn
    return foreign.compiler_of(backend) if foreign.is_place(backend) else lambda fn: torch.compile(fn, backend=backend)


class Joined(torch.nn.Module):
    """Several programs side by side; those that are modules keep their parameters."""

    def __init__(self, parts: Sequence[tuple[Any, int, int]]) -> None:
        super().__init__()
        self.modules_among = torch.nn.ModuleList(part for part, _, _ in parts if isinstance(part, torch.nn.Module))
        self.bounds = [(start, end) for _, start, end in parts]
        self.call = [None if isinstance(part, torch.nn.Module) else part for part, _, _ in parts]

    def forward(self, *flat: Any) -> list[Any]:
        modules = iter(self.modules_among)
        return [
            (one or next(modules))(*flat[start:end]) for one, (start, end) in zip(self.call, self.bounds, strict=True)
        ]


def _joined(parts: Sequence[tuple[Any, int, int]]) -> Callable[..., Any]:
    """One function, or module, of all inputs. Dims that are known at run time only are so for each part by itself."""
    dynamic = {
        (start + index, dim): f"{name}{start}"
        for part, start, _ in parts
        for (index, dim), name in getattr(part, "dynamic", {}).items()
    }

    def together(*flat: Any) -> list[Any]:
        return [function(*flat[start:end]) for function, start, end in parts]

    joined: Any = Joined(parts) if any(isinstance(part, torch.nn.Module) for part, _, _ in parts) else together
    joined.dynamic = dynamic
    return joined  # type: ignore[no-any-return]


def _in_one_compile(modules: list[Any], compile: Callable[[Any], Any]) -> list[Outcome]:
    functions = [module.f for module in modules]
    torch.manual_seed(0)
    groups = [module.inputs() for module in modules]
    ends = list(accumulate(map(len, groups)))
    parts = [(function, end - len(args), end) for function, end, args in zip(functions, ends, groups, strict=True)]
    outs = compile(_joined(parts))(*(arg for args in groups for arg in args))
    losses = [
        value.double()
        for m, out in zip(modules, outs, strict=True)
        if hasattr(m, "loss") and (value := m.loss(out)).requires_grad
    ]
    if losses:  # one backward for all: they share a graph
        torch.stack(losses).sum().backward()
    return [("value", plain(m.after(out, args))) for m, out, args in zip(modules, outs, groups, strict=True)]


@contextmanager
def surroundings() -> Iterator[None]:
    """What programs may change outside themselves is as it was afterwards."""
    environment, known = dict(os.environ), {*vars(builtins)}
    seam.counters.clear()
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.use_deterministic_algorithms(False)
        torch.set_autocast_enabled("cpu", False)
        sys.modules.pop("fuzz_world", None)
        for name in {*vars(builtins)} - known:
            delattr(builtins, name)
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)
