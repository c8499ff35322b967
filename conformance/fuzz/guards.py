"""When must a compiler capture again, and when must it not? A model of that, and a machine that plays calls against it.

The model says of each call *yes*, *no* or *maybe*. A capture that it did not expect is an extra recompile; one that it
expected and did not see is a missed one; and an answer that is not eager's is wrong whatever the model says. Played with a
backend that compiles nothing it costs captures alone; played with the compiler itself it is held to its caches as well: what
was compiled before Dynamo forgot it must be a hit, what never was must be none.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from conformance import oracle
from conformance.backends.base import Case
from conformance.backends.inductor import cache_stage
from conformance.backends.inductor.backend import InductorBackend
from conformance.backends.inductor.compiled import empty_caches
from conformance.backends.inductor.guards import Counting
from conformance.backends.inductor.seam import seam
from conformance.errors import UsageError
from conformance.fuzz.example import Call, Example
from conformance.fuzz.runner import _own_code, overlaps
from conformance.fuzz.strategies import plain
from conformance.fuzz.watchdog import Hung, limited
from conformance.inputs import Scalar, Tensor
from conformance.layouts import place, possible
from conformance.micrograph import Micrograph
from conformance.target import CPU
from conformance.verdict import Finding, Kind

MODES = ("", "grad", "autocast", "inference")
LAYOUTS = ("contiguous", "transposed", "offset", "strided", "expanded")
UNPROMISED = ("strided", "expanded")  # strides that are no products of sizes: when they are guarded as numbers is not promised
STANCES = ("force_eager", "eager_on_recompile", "fail_on_recompile")
RESTART = "restart"
TOURED = 32  # captures that a tour may need
DYNAMIC = "dynamic"
COMPILED = "guards, compiled"
CHECK = "FUZ001"  # captures again exactly when the model says
Door = Callable[..., Any]


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
        changed = [name for name, value in numbers.items() if isinstance(value, float) and self.sizes.get(name) == DYNAMIC]
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
        sizes = tuple((name, DYNAMIC if self.sizes[name] == DYNAMIC and _any_size(value) else value) for name, value in known)
        self.captured.append(Guarded(kind_of(call), sizes))
        return self.captured[-1]

    def exact(self, call: Call) -> tuple[Any, ...]:
        return (*kind_of(call), tuple(sorted((name, str(type(value)), value) for name, value in numbers_of(call).items())))


@dataclass
class Cached:
    """What the caches on disk hold. They start empty, and outlive Dynamo's own memory."""

    promised: bool
    captures: set[Guarded] = field(default_factory=set)

    def judge(self, capture: Guarded, counted: dict[str, int]) -> tuple[Kind, str] | None:
        known, programs = capture in self.captures, {other.program for other in self.captures}
        self.captures.add(capture)
        missed, bypassed = counted["fx_miss"] + counted["aot_miss"], counted["fx_bypass"] + counted["aot_bypass"]
        # An entry for training is written when the backward graph was compiled, which these calls may never ask for.
        if not self.promised or bypassed or capture.kind[1] == "grad":
            return None
        if known and missed:
            return Kind.CACHE_MISS, f"compiled before, and not found in the caches: {counted}"
        if capture.program not in programs and counted["fx_hit"]:
            return Kind.STALE_CACHE, f"never compiled before, and found in the caches: {counted}"
        return None


# ----------------------------------------------------------------------------------------------- playing


class Player:
    """One compiled micrograph, called in sequence; it knows how often it was captured."""

    patience: float = 0.0  # seconds for one call
    journal: Callable[[Example], None] = staticmethod(lambda example: None)  # told of each sequence before its last call

    def __init__(self, micrograph: type[Micrograph], door: Door | None = None, limit: int = 8, compiled: bool = False) -> None:
        self.micrograph, self.limit, self.compiled = micrograph, limit, compiled
        self.model = self._model()
        self.stack = ExitStack()
        self.cached = None
        if compiled:
            folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-guards-", ignore_cleanup_errors=True))
            self.stack.enter_context(empty_caches(Path(folder)))
            self.cached = Cached(micrograph.contract.cache.cacheable)
        self.counting = Counting()
        self.case = Case(micrograph, CPU)
        self.modules = micrograph.build(), micrograph.build()
        self.own = door is None
        door = door or (lambda fn: torch.compile(fn, backend=self.counting))
        self.fn = door(_own_code(self.modules[1]))
        self.calls: list[Call] = []

    def close(self) -> None:
        self.stack.close()

    def _model(self) -> Model:
        return Model(self.micrograph, self.limit, loose=not predictable(self.micrograph))

    def play(self, call: Call) -> Finding | None:
        """Make the call; None, or what is wrong."""
        ref = self._reference(call)
        if ref is None:
            return None
        self.calls.append(call)
        self.journal(self.example())
        if call.stance == RESTART:
            seam.reset()
            self.model = self._model()
        try:
            with limited(self.patience):
                wrong = self._under_stance(call, ref) if call.stance in STANCES else self._plainly(call, ref)
        except Hung as hung:
            wrong = Kind.TIMEOUT, str(hung)
        return Finding(wrong[0], CHECK, f"call {len(self.calls)}, {shown(call)}: {wrong[1]}") if wrong else None

    def _plainly(self, call: Call, ref: oracle.Reference) -> tuple[Kind, str] | None:
        expected = self.model.expects(call)
        outcome, seen, counted = self._counted(call)
        capture = self.model.saw(call, seen)
        if (wrong := oracle.compare(outcome, ref)) and not self._contradicted(call, ref):
            return wrong[0].kind, str(wrong[0])
        if expected == "no" and seen:
            return Kind.EXTRA_RECOMPILE, "captured again, though an earlier capture takes it"
        if expected == "yes" and not seen:
            return Kind.MISSED_RECOMPILE, "not captured again"
        return self.cached.judge(capture, counted) if self.cached and capture and seen == 1 else None

    def _under_stance(self, call: Call, ref: oracle.Reference) -> tuple[Kind, str] | None:
        """Nothing may be captured. What needs a capture is eager's, or refused where the stance says so."""
        expected = self.model.expects(call)
        with torch.compiler.set_stance(call.stance):  # type: ignore[arg-type]
            outcome, seen, _ = self._counted(call)
        if seen:
            return Kind.EXTRA_RECOMPILE, f"captured although the stance is {call.stance}"
        if call.stance == "fail_on_recompile" and not self.model.exhausted():
            if outcome.error is not None and "fail_on_recompile" in str(outcome.error):
                return (Kind.EXTRA_RECOMPILE, "refused, though an earlier capture takes it") if expected == "no" else None
            if expected == "yes" and outcome.error is None:
                return Kind.MISSED_RECOMPILE, "not refused, though it needs a capture"
        elif call.stance == "fail_on_recompile" and outcome.error is not None:
            return None
        wrong = oracle.compare(outcome, ref)
        return (wrong[0].kind, str(wrong[0])) if wrong and not self._contradicted(call, ref) else None

    def _counted(self, call: Call) -> tuple[oracle.Outcome, int, dict[str, int]]:
        before = self.captures()
        with _limit(self.limit), cache_stage.counted() as counted:
            outcome = self._run(lambda *x: self.fn(*InductorBackend().marked(self.case, x)), call, self.modules[1])
        return outcome, self.captures() - before, counted

    def captures(self) -> int:
        """By our own backend; where another one compiles, by Dynamo's counter."""
        return self.counting.count if self.own else int(seam.counters["stats"].get("unique_graphs", 0))

    def example(self) -> Example:
        return Example(self.micrograph.name(), tuple(self.calls), about=COMPILED if self.compiled else "guards", limit=self.limit)

    def _reference(self, call: Call) -> oracle.Reference | None:
        try:
            given = call.inputs(self.micrograph)
        except UsageError:
            return None  # it shares a storage that is too small for this layout
        eager = self._run(self.modules[0], call, self.modules[0])
        if eager.error is not None:
            return None
        if any(overlaps(given[index]) for index in oracle.mutated(eager, given)):
            return None  # which of two writes to one place is the last is nobody's promise
        if not self.compiled:  # the captured graph is run by eager's own kernels: the same answer, and no fp64 needed to judge it
            return oracle.Reference(eager, None)
        with self._cast(call, self.modules[0]):
            exact = oracle.in_double(self.modules[0], call.inputs(self.micrograph), calls=self.micrograph.steps)
        return oracle.Reference(eager, exact if exact is not None and len(exact.outputs) == len(eager.outputs) else None)

    def _contradicted(self, call: Call, ref: oracle.Reference) -> bool:
        """Does eager give another answer when it is asked again?"""
        again = [self._run(self.modules[0], call, self.modules[0]) for _ in range(2)]
        return any(oracle.compare(outcome, ref) for outcome in again)

    def _run(self, fn: Callable[..., Any], call: Call, module: Any) -> oracle.Outcome:
        def inside(*inputs: Any) -> Any:
            with mode(call.mode):
                return fn(*inputs)

        with self._cast(call, module):
            return oracle.run(inside, call.inputs(self.micrograph), module, calls=self.micrograph.steps)

    @contextmanager
    def _cast(self, call: Call, module: Any) -> Iterator[None]:
        if call.dtype:
            module.to(getattr(torch, call.dtype))
        try:
            yield
        finally:
            if call.dtype:
                module.float()


@contextmanager
def _limit(count: int) -> Iterator[None]:

    with seam.dynamo_config.patch(recompile_limit=count):
        yield


def shown(call: Call) -> str:
    parts = [f"{name}={size}" for name, size in numbers_of(call).items()]
    parts += [word for word in (call.dtype, call.mode, call.stance) if word]
    parts += [f"input {i} {g.layout}" for i, g in enumerate(call.given) if g.layout != "contiguous"]
    return " ".join(parts) or "as declared"


# ----------------------------------------------------------------------------------------------- machine


class Broken(Exception):
    def __init__(self, finding: Finding, player: Player) -> None:
        super().__init__(finding.detail)
        self.finding, self.example = finding, player.example()


BROKEN = {kind: type(f"Broken_{kind}", (Broken,), {}) for kind in Kind}


def varied(micrograph: type[Micrograph]) -> list[str]:
    """The dims for which the contract promises one recompile, and then none; or none at all. Where it promises nothing: all."""
    capture = micrograph.contract.capture
    promised = [dim for dim in micrograph.dims if dim in capture.dynamic or capture.recompiles.get(dim) == 1]
    return promised if predictable(micrograph) else list(micrograph.dims)


def predictable(micrograph: type[Micrograph]) -> bool:
    capture = micrograph.contract.capture
    return capture.graphs == 1 and capture.breaks == 0 and (1 in capture.recompiles.values() or bool(capture.dynamic))


def playable(micrograph: type[Micrograph]) -> bool:
    return bool(micrograph.dims) and not micrograph.contract.runtime.random


def machine(
    micrograph: type[Micrograph],
    door: Door | None = None,
    compiled: bool = False,
    patience: float = 0.0,
    journal: Callable[[Example], None] = lambda example: None,
) -> type[RuleBasedStateMachine]:
    dims, dtypes, moved, start = varied(micrograph), dtypes_of(micrograph), movable(micrograph), first_call(micrograph)
    numbers = [index for index, _ in start.scalars]

    class Machine(RuleBasedStateMachine):
        @initialize(limit=st.sampled_from((8, 3)))
        def begin(self, limit: int) -> None:
            seam.reset()
            self.player = Player(micrograph, door, limit, compiled)
            self.player.patience, self.player.journal = patience, journal
            self.call = start
            self.made()

        def teardown(self) -> None:
            self.player.close()

        def made(self, **once: Any) -> None:
            if finding := self.player.play(replace(self.call, **once)):
                raise BROKEN[finding.kind](finding, self.player)

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

        if numbers:

            @rule(index=st.sampled_from(numbers), data=st.data())
            def another_number(self, index: int, data: st.DataObject) -> None:
                value = data.draw(st.sampled_from(numbers_near(dict(start.scalars)[index])), label=f"input {index}")
                self.call = replace(self.call, scalars=_put(self.call.scalars, index, value))
                self.made()

        @rule(name=st.sampled_from(modes_of(micrograph)))
        def another_mode(self, name: str) -> None:
            self.call = replace(self.call, mode=name)
            self.made()

        if moved:

            @rule(index=st.sampled_from(moved), layout=st.sampled_from(LAYOUTS))
            def another_layout(self, index: int, layout: str) -> None:
                given = list(self.call.given)
                given[index] = replace(given[index], layout=layout)
                self.call = replace(self.call, given=tuple(given))
                self.made()

        @rule(stance=st.sampled_from(STANCES))
        def under_a_stance(self, stance: str) -> None:
            self.made(stance=stance)

        @rule(data=st.data())
        def another_size_under_a_stance(self, data: st.DataObject) -> None:
            dim = data.draw(st.sampled_from(dims), label="dim")
            size = data.draw(st.sampled_from(sizes_of(micrograph, dim)), label=f"size of {dim}")
            self.made(stance=data.draw(st.sampled_from(STANCES), label="stance"), dims={**self.call.dims, dim: size})

        @rule()
        def after_a_restart(self) -> None:
            """Dynamo forgets, as in a new process. Every program is captured anew, and the caches still have it."""
            self.made(stance=RESTART)

    Machine.__name__ = f"Guards_{micrograph.__name__}"
    return Machine


def _movable(spec: Any) -> bool:
    return isinstance(spec, Tensor) and possible("transposed", len(spec.names())) and spec.shares is None


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def tours(micrograph: type[Micrograph]) -> Iterator[tuple[Call, ...]]:
    """Sequences that change one thing after the other, and back: every value that a rule may draw is met once, whatever is drawn."""
    start, known = first_call(micrograph), modes_of(micrograph)
    yield tuple(replace(start, mode=name) for name in ("", "grad", "inference", "grad", "autocast", "", "inference") if name in known)
    if dtypes := dtypes_of(micrograph):
        yield (start, *(replace(start, dtype=name) for name in (*dtypes, "")))
    for dim in varied(micrograph):
        yield (start, *(replace(start, dims={**start.dims, dim: size}) for size in (*sizes_of(micrograph, dim), start.dims[dim])))
    for index, value in start.scalars:
        yield tuple(replace(start, scalars=_put(start.scalars, index, near)) for near in (*numbers_near(value), value))
    for index in movable(micrograph):
        moved = [replace(start.given[index], layout=layout) for layout in (*LAYOUTS, "contiguous")]
        yield tuple(replace(start, given=(*start.given[:index], given, *start.given[index + 1 :])) for given in moved)


def modes_of(micrograph: type[Micrograph]) -> tuple[str, ...]:
    """What is trained is called with gradients anyway."""
    trained = any(isinstance(spec, Tensor) and spec.grad for spec in micrograph.inputs)
    return tuple(name for name in MODES if not (trained and name == "grad"))


def _put(scalars: tuple[tuple[int, float], ...], index: int, value: float) -> tuple[tuple[int, float], ...]:
    return tuple({**dict(scalars), index: value}.items())


def first_call(micrograph: type[Micrograph]) -> Call:
    numbers = [(index, spec.value) for index, spec in enumerate(micrograph.inputs) if isinstance(spec, Scalar) and _number(spec.value)]
    return Call(dict(micrograph.dims), plain(micrograph).given, scalars=tuple(numbers))  # type: ignore[arg-type]


def dtypes_of(micrograph: type[Micrograph]) -> list[str]:
    return sorted({str(d)[6:] for spec in micrograph.inputs if isinstance(spec, Tensor) for d in spec.dtypes})


def movable(micrograph: type[Micrograph]) -> list[int]:
    return [index for index, spec in enumerate(micrograph.inputs) if _movable(spec)]


def numbers_near(first: int | float) -> list[int | float]:
    """A few steps away; of the other sign; nothing; of the other type."""
    if isinstance(first, int):
        return [first, first + 2, first + 4, first + 6, -first, 0, float(first), first + 0.5]
    return [first, first + 0.125, first + 0.25, first + 0.375, -first, 0.0, int(first) + 2]


def sizes_of(micrograph: type[Micrograph], dim: str) -> list[int]:
    """Sizes of one parity that no other dim has, and one; so that nothing but this dim's own size changes."""
    first = micrograph.dims[dim]
    others = {size for other, size in micrograph.dims.items() if other != dim}
    place = list(micrograph.dims).index(dim)
    return [s for s in (first, *(first + 2 * (place + k * len(micrograph.dims)) for k in (1, 2, 3)), 1) if s not in others]


def search_guards(
    micrograph: type[Micrograph],
    door: Door | None = None,
    examples: int = 8,
    steps: int = 8,
    number: int = 0,
    compiled: bool = False,
    patience: float = 0.0,
    journal: Callable[[Example], None] = lambda example: None,
) -> tuple[Example, Finding] | None:
    """Play; a shrunk sequence of calls and what is wrong with it, or None. `compiled`: the door leads to a compiler, whose caches
    are empty for each sequence."""
    from hypothesis import seed

    if toured := _toured(micrograph, door, number, compiled, patience, journal):
        return toured
    played = machine(micrograph, door, compiled, patience, journal)
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
        calls, finding = shortest(micrograph, broken, door, compiled)
        return replace(broken.example, calls=calls), finding
    finally:
        seam.reset()
    return None


def _toured(
    micrograph: type[Micrograph], door: Door | None, number: int, compiled: bool, patience: float, journal: Callable[[Example], None]
) -> tuple[Example, Finding] | None:
    """Tours first: all of them where only captures are paid for, another one each round where compiles are."""
    every = list(tours(micrograph))
    for calls in [every[number % len(every)]] if compiled else every:
        seam.reset()
        player = Player(micrograph, door, TOURED, compiled)
        player.patience, player.journal = patience, journal
        try:
            for call in calls:
                if finding := player.play(call):
                    calls, finding = shortest(micrograph, Broken(finding, player), door, compiled)
                    return replace(player.example(), calls=calls), finding
        finally:
            player.close()
    return None


def shortest(micrograph: type[Micrograph], broken: Broken, door: Door | None, compiled: bool = False) -> tuple[tuple[Call, ...], Finding]:
    """Leave out calls, then make each as plain as the first, for as long as the same thing goes wrong at the end."""
    calls, finding = broken.example.calls, broken.finding
    if finding.kind is Kind.TIMEOUT:
        return calls, finding
    start = replace(calls[0], dims=dict(micrograph.dims), given=plain(micrograph).given, seed=0, mode="", dtype="", stance="")
    trials = [lambda i: calls[:i] + calls[i + 1 :]]
    for name in ("seed", "mode", "dtype", "given", "dims", "stance", "scalars"):
        trials.append(lambda i, name=name: (*calls[:i], replace(calls[i], **{name: getattr(start, name)}), *calls[i + 1 :]))  # type: ignore[misc]
    for trial in trials:
        index = 0
        while index < len(calls):
            tried = trial(index)
            again = played_through(micrograph, tried, door, broken.example.limit, compiled) if tried and tried != calls else None
            if again is not None and again[1].kind is finding.kind:
                calls, finding = tried[: again[0]], again[1]
                index += trial is not trials[0]
            else:
                index += 1
    return calls, finding


def played_through(
    micrograph: type[Micrograph], calls: tuple[Call, ...], door: Door | None, limit: int = 8, compiled: bool = False
) -> tuple[int, Finding] | None:
    """How many calls it took until something was wrong, and what."""
    seam.reset()
    player = Player(micrograph, door, limit, compiled)
    try:
        for number, call in enumerate(calls, 1):
            if finding := player.play(call):
                return number, finding
    finally:
        player.close()
    return None


def replayed(example: Example, backend: Any) -> list[dict[str, Any]]:
    """The calls of an example against the model, in this process."""
    compiled = example.about == COMPILED
    door = backend.compile_entry if compiled else None
    found = played_through(example.base(), example.calls, door, example.limit, compiled)
    stages = {Kind.CACHE_MISS: "cache", Kind.STALE_CACHE: "cache", Kind.EXTRA_RECOMPILE: "capture", Kind.MISSED_RECOMPILE: "capture"}
    stage = stages.get(found[1].kind, "runtime" if compiled else "capture") if found else ""
    return [{"stage": stage, **found[1].to_json()}] if found else []
