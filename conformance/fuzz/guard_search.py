"""Searches for sequences of calls that break the model of captures: tours that change one thing after the other, then a
hypothesis state machine; and the shortest sequence that still does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from conformance.backends.inductor.seam import seam
from conformance.fuzz.example import MODES, RESTART, STANCES, Call, Example
from conformance.fuzz.guard_model import predictable
from conformance.fuzz.guard_player import COMPILED, Door, Player
from conformance.fuzz.strategies import plain
from conformance.inputs import Scalar, Tensor
from conformance.layouts import possible
from conformance.micrograph import Micrograph
from conformance.reduce import ddmin, one_by_one
from conformance.verdict import Finding, Kind

LAYOUTS = ("contiguous", "transposed", "offset", "strided", "expanded")
TOURED = 32  # captures that a tour may need


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
    yield tuple(
        replace(start, mode=name)
        for name in ("", "grad", "inference", "grad", "autocast", "", "inference")
        if name in known
    )
    if dtypes := dtypes_of(micrograph):
        yield (start, *(replace(start, dtype=name) for name in (*dtypes, "")))
    for dim in varied(micrograph):
        yield (
            start,
            *(replace(start, dims={**start.dims, dim: size}) for size in (*sizes_of(micrograph, dim), start.dims[dim])),
        )
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
    numbers = [
        (index, spec.value)
        for index, spec in enumerate(micrograph.inputs)
        if isinstance(spec, Scalar) and _number(spec.value)
    ]
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
    return [
        s for s in (first, *(first + 2 * (place + k * len(micrograph.dims)) for k in (1, 2, 3)), 1) if s not in others
    ]


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
    micrograph: type[Micrograph],
    door: Door | None,
    number: int,
    compiled: bool,
    patience: float,
    journal: Callable[[Example], None],
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


def shortest(
    micrograph: type[Micrograph], broken: Broken, door: Door | None, compiled: bool = False
) -> tuple[tuple[Call, ...], Finding]:
    """Leave out calls, then make each as plain as the first, for as long as the same thing goes wrong at the end."""
    calls, finding = broken.example.calls, broken.finding
    if finding.kind is Kind.TIMEOUT:
        return calls, finding
    start = replace(
        calls[0], dims=dict(micrograph.dims), given=plain(micrograph).given, seed=0, mode="", dtype="", stance=""
    )

    def plainer(name: str, i: int) -> tuple[Call, ...]:
        return (*calls[:i], replace(calls[i], **{name: getattr(start, name)}), *calls[i + 1 :])

    def fails(tried: Sequence[Call]) -> bool:
        """The same thing goes wrong: from here on it is these calls, as far as they were played."""
        nonlocal calls, finding
        again = played_through(micrograph, tuple(tried), door, broken.example.limit, compiled)
        if again is None or again[1].kind is not finding.kind:
            return False
        calls, finding = tuple(tried)[: again[0]], again[1]
        return True

    ddmin(calls, one_by_one(fails))
    for name in ("seed", "mode", "dtype", "given", "dims", "stance", "scalars"):
        index = 0
        while index < len(calls):
            if (tried := plainer(name, index)) != calls:
                fails(tried)
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
    stages = {
        Kind.CACHE_MISS: "cache",
        Kind.STALE_CACHE: "cache",
        Kind.EXTRA_RECOMPILE: "capture",
        Kind.MISSED_RECOMPILE: "capture",
    }
    stage = stages.get(found[1].kind, "runtime" if compiled else "capture") if found else ""
    return [{"stage": stage, **found[1].to_json()}] if found else []
