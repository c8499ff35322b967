"""When must a compiler capture again, and when must it not? A model of that, and a machine that plays calls against it.

The model says of each call *yes*, *no* or *maybe*. A capture that it did not expect is an extra recompile; one that it
expected and did not see is a missed one; and an answer that is not eager's is wrong whatever the model says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from conformance import oracle
from conformance.backends.inductor.guards import Counting
from conformance.fuzz.example import Call, Example
from conformance.fuzz.layout import possible
from conformance.fuzz.runner import _own_code
from conformance.fuzz.strategies import plain
from conformance.micrograph import Micrograph, Tensor
from conformance.verdict import Finding, Kind

MODES = ("", "grad", "autocast", "inference")
DYNAMIC = "dynamic"
CHECK = "FUZ001"  # captures again exactly when the model says


@contextmanager
def mode(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        if name == "grad":
            stack.enter_context(torch.enable_grad())
        elif name == "autocast":
            stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        elif name == "inference":
            stack.enter_context(torch.inference_mode())
        yield


# ------------------------------------------------------------------------------------------------ model


@dataclass(frozen=True)
class Guarded:
    """What one capture is good for."""

    kind: tuple[Any, ...]  # dtype, layouts, mode: it must be the same
    sizes: tuple[tuple[str, int | str], ...]  # it must be the same, or any size above one

    def takes(self, call: Call) -> bool:
        fits = all(call.dims[dim] > 1 if size == DYNAMIC else call.dims[dim] == size for dim, size in self.sizes)
        return self.kind == kind_of(call) and fits


def kind_of(call: Call) -> tuple[Any, ...]:
    return (call.dtype, call.mode, tuple(given.layout for given in call.given))


@dataclass
class Model:
    """Dynamo's promise: static at first; a dim that changed is symbolic from the next capture on; 0 and 1 are special;
    properties that are no sizes are guarded as they are; at most `limit` captures, then eager."""

    limit: int = 8
    captured: list[Guarded] = field(default_factory=list)
    served: set[tuple[Any, ...]] = field(default_factory=set)
    sizes: dict[str, int | str] = field(default_factory=dict)
    layouts: set[tuple[str, ...]] = field(default_factory=set)

    def expects(self, call: Call) -> str:
        if self._exact(call) in self.served or any(capture.takes(call) for capture in self.captured):
            return "no"
        if len(self.captured) >= self.limit:
            return "no"
        # Strides that changed may have become symbolic, and what then fits is not promised.
        return "maybe" if len(self.layouts | {kind_of(call)[2]}) > 1 else "yes"

    def saw(self, call: Call, captures: int) -> None:
        self.served.add(self._exact(call))
        self.layouts.add(kind_of(call)[2])
        if not captures:
            return
        for dim, size in call.dims.items():
            self.sizes[dim] = size if self.sizes.get(dim, size) == size else DYNAMIC
        sizes = tuple((dim, DYNAMIC if self.sizes[dim] == DYNAMIC and size > 1 else size) for dim, size in call.dims.items())
        self.captured.append(Guarded(kind_of(call), sizes))

    def _exact(self, call: Call) -> tuple[Any, ...]:
        return (*kind_of(call), tuple(sorted(call.dims.items())))


# ----------------------------------------------------------------------------------------------- playing


class Player:
    """One compiled micrograph, called in sequence; it knows how often it was captured."""

    def __init__(self, micrograph: type[Micrograph], door: Callable[..., Any] | None = None, limit: int = 8) -> None:
        self.micrograph, self.model = micrograph, Model(limit)
        self.counting = Counting()
        self.modules = micrograph.build(), micrograph.build()
        door = door or (lambda fn: torch.compile(fn, backend=self.counting))
        self.fn = door(_own_code(self.modules[1]))
        self.calls: list[Call] = []

    def play(self, call: Call) -> Finding | None:
        """Make the call; None, or what is wrong."""
        ref = self._reference(call)
        if ref is None:
            return None
        self.calls.append(call)
        expected, before = self.model.expects(call), captures(self.counting)
        with _limit(self.model.limit):
            outcome = self._run(self.fn, call, self.modules[1])
        seen = captures(self.counting) - before
        self.model.saw(call, seen)
        if wrong := oracle.compare(outcome, ref):
            return Finding(wrong[0].kind, CHECK, f"call {len(self.calls)}, {shown(call)}: {wrong[0]}")
        if expected == "no" and seen:
            detail = f"call {len(self.calls)}, {shown(call)}: captured again, though an earlier capture takes it"
            return Finding(Kind.EXTRA_RECOMPILE, CHECK, detail)
        if expected == "yes" and not seen:
            return Finding(Kind.MISSED_RECOMPILE, CHECK, f"call {len(self.calls)}, {shown(call)}: not captured again")
        return None

    def _reference(self, call: Call) -> oracle.Reference | None:
        eager = self._run(self.modules[0], call, self.modules[0])
        # The captured graph is run by eager's own kernels: the same answer, and no fp64 needed to judge it.
        return None if eager.error is not None else oracle.Reference(eager, None)

    def _run(self, fn: Callable[..., Any], call: Call, module: Any) -> oracle.Outcome:
        def inside(*inputs: Any) -> Any:
            with mode(call.mode):
                return fn(*inputs)

        cast = getattr(torch, call.dtype) if call.dtype else None
        if cast is not None:
            module.to(cast)
        try:
            return oracle.run(inside, call.inputs(self.micrograph), module, calls=self.micrograph.steps)
        finally:
            if cast is not None:
                module.float()


def captures(counting: Counting) -> int:
    """By our own backend; where the real one compiles, by Dynamo's counter."""
    return counting.count or int(torch._dynamo.utils.counters["stats"].get("unique_graphs", 0))


@contextmanager
def _limit(count: int) -> Iterator[None]:
    import torch._dynamo

    with torch._dynamo.config.patch(recompile_limit=count):
        yield


def shown(call: Call) -> str:
    parts = [f"{dim}={size}" for dim, size in call.dims.items()]
    parts += [call.dtype] if call.dtype else []
    parts += [call.mode] if call.mode else []
    parts += [f"input {i} {g.layout}" for i, g in enumerate(call.given) if g.layout != "contiguous"]
    return " ".join(parts) or "as declared"


# ----------------------------------------------------------------------------------------------- machine


class Broken(Exception):
    def __init__(self, finding: Finding, calls: list[Call]) -> None:
        super().__init__(finding.detail)
        self.finding, self.calls = finding, tuple(calls)


BROKEN = {kind: type(f"Broken_{kind}", (Broken,), {}) for kind in Kind}


def varied(micrograph: type[Micrograph]) -> list[str]:
    """The dims for which the contract promises one recompile, and then none."""
    capture = micrograph.contract.capture
    return [dim for dim, count in capture.recompiles.items() if count == 1 and dim not in capture.dynamic]


def predictable(micrograph: type[Micrograph]) -> bool:
    capture = micrograph.contract.capture
    return capture.graphs == 1 and capture.breaks == 0 and bool(varied(micrograph)) and not micrograph.contract.runtime.random


def machine(micrograph: type[Micrograph], door: Callable[..., Any] | None = None) -> type[RuleBasedStateMachine]:
    dims = varied(micrograph)
    start = plain(micrograph)
    dtypes = sorted({str(d)[6:] for spec in micrograph.inputs if isinstance(spec, Tensor) for d in spec.dtypes})
    movable = [index for index, spec in enumerate(micrograph.inputs) if _movable(spec)]

    class Machine(RuleBasedStateMachine):
        @initialize(limit=st.sampled_from((8, 3)))
        def begin(self, limit: int) -> None:
            torch._dynamo.reset()
            self.player = Player(micrograph, door, limit)
            self.call = Call(dict(micrograph.dims), start.given)
            self.made()

        def made(self) -> None:
            if finding := self.player.play(self.call):
                raise BROKEN[finding.kind](finding, self.player.calls)

        @rule()
        def again(self) -> None:
            self.made()

        @rule(seed=st.integers(1, 9))
        def other_values(self, seed: int) -> None:
            self.call = replace(self.call, seed=seed)
            self.made()

        @rule(data=st.data())
        def another_size(self, data: st.DataObject) -> None:
            dim = data.draw(st.sampled_from(dims), label="dim")
            size = data.draw(st.sampled_from(sizes_of(micrograph, dim)), label=f"size of {dim}")
            self.call = replace(self.call, dims={**self.call.dims, dim: size})
            self.made()

        if dtypes:

            @rule(dtype=st.sampled_from(["", *dtypes]))
            def another_dtype(self, dtype: str) -> None:
                self.call = replace(self.call, dtype=dtype)
                self.made()

        @rule(name=st.sampled_from(MODES))
        def another_mode(self, name: str) -> None:
            self.call = replace(self.call, mode=name)
            self.made()

        if movable:

            @rule(index=st.sampled_from(movable), layout=st.sampled_from(("contiguous", "transposed", "offset")))
            def another_layout(self, index: int, layout: str) -> None:
                given = list(self.call.given)
                given[index] = replace(given[index], layout=layout)
                self.call = replace(self.call, given=tuple(given))
                self.made()

        @rule()
        def eager_by_stance(self) -> None:
            """Nothing is captured, and the answer is eager's."""
            before = captures(self.player.counting)
            with torch.compiler.set_stance("force_eager"):
                self.player._run(self.player.fn, self.call, self.player.modules[1])
            if captures(self.player.counting) != before:
                finding = Finding(Kind.EXTRA_RECOMPILE, CHECK, "captured although the stance is force_eager")
                raise BROKEN[finding.kind](finding, self.player.calls)

        @rule()
        def no_recompile_by_stance(self) -> None:
            """What was served before is served under fail_on_recompile too."""
            with torch.compiler.set_stance("fail_on_recompile"):
                outcome = self.player._run(self.player.fn, self.call, self.player.modules[1])
            served = self.player.model._exact(self.call) in self.player.model.served
            if outcome.error is not None and served and len(self.player.model.captured) < self.player.model.limit:
                finding = Finding(Kind.EXTRA_RECOMPILE, CHECK, f"fail_on_recompile refuses a call that was served: {shown(self.call)}")
                raise BROKEN[finding.kind](finding, self.player.calls)

    Machine.__name__ = f"Guards_{micrograph.__name__}"
    return Machine


def _movable(spec: Any) -> bool:
    return isinstance(spec, Tensor) and possible("transposed", len(spec.names())) and spec.shares is None


def sizes_of(micrograph: type[Micrograph], dim: str) -> list[int]:
    """Sizes of one parity that no other dim has, and one; so that nothing but this dim's own size changes."""
    first = micrograph.dims[dim]
    others = {size for other, size in micrograph.dims.items() if other != dim}
    place = list(micrograph.dims).index(dim)
    return [s for s in (first, *(first + 2 * (place + k * len(micrograph.dims)) for k in (1, 2, 3)), 1) if s not in others]


def search_guards(
    micrograph: type[Micrograph], door: Callable[..., Any] | None = None, examples: int = 8, steps: int = 8, number: int = 0
) -> tuple[Example, Finding] | None:
    """Play; a shrunk sequence of calls and what is wrong with it, or None."""
    from hypothesis import seed

    played = machine(micrograph, door)
    # Captures are too dear for hypothesis' shrinker, which would try hundreds of sequences: a sequence is short, and calls can
    # be left out of it one by one.
    budget = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    try:
        run_state_machine_as_test(seed(number)(played), settings=budget)
    except Broken as broken:
        calls, finding = shortest(micrograph, broken, door)
        return Example(micrograph.name(), calls, about="guards"), finding
    finally:
        torch._dynamo.reset()
    return None


def shortest(micrograph: type[Micrograph], broken: Broken, door: Callable[..., Any] | None) -> tuple[tuple[Call, ...], Finding]:
    """Leave out calls, then make each as plain as the first, for as long as the same thing goes wrong at the end."""
    calls, finding = broken.calls, broken.finding
    start = Call(dict(micrograph.dims), plain(micrograph).given)
    trials = [lambda i: calls[:i] + calls[i + 1 :]]
    for name in ("seed", "mode", "dtype", "given", "dims"):
        trials.append(lambda i, name=name: (*calls[:i], replace(calls[i], **{name: getattr(start, name)}), *calls[i + 1 :]))
    for trial in trials:
        index = 0
        while index < len(calls):
            tried = trial(index)
            again = played_through(micrograph, tried, door) if tried and tried != calls else None
            if again is not None and again[1].kind is finding.kind:
                calls, finding = tried[: again[0]], again[1]
                index += trial is not trials[0]
            else:
                index += 1
    return calls, finding


def played_through(micrograph: type[Micrograph], calls: tuple[Call, ...], door: Callable[..., Any] | None) -> tuple[int, Finding] | None:
    """How many calls it took until something was wrong, and what."""
    torch._dynamo.reset()
    player = Player(micrograph, door)
    for number, call in enumerate(calls, 1):
        if finding := player.play(call):
            return number, finding
    return None


def replayed(example: Example, backend: Any) -> list[dict[str, Any]]:
    """The calls of an example against the model, in this process."""
    found = played_through(example.base(), example.calls, getattr(backend, "guard_door", None))
    return [{"stage": "capture", **found[1].to_json()}] if found else []
