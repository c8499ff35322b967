"""Planted faults are found within two minutes, and shrunk to the smallest case that shows them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch

from conformance import backends
from conformance.fuzz.coverage import Tally
from conformance.fuzz.guard_player import Player, shown
from conformance.fuzz.guard_search import played_through, replayed, search_guards
from conformance.fuzz.search import Profile, Suspect, search
from conformance.fuzz.served import runner_for
from conformance.library import load
from conformance.target import CPU
from conformance.verdict import Kind
from tests.fuzz.faulty_backends import FAULTS, LyingBackend

THOROUGH = Profile("test", forms=12, examples=150, static=0, minutes=2.0)
LIBRARY = load()


@pytest.fixture(autouse=True)
def four_minutes() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < 240


def hunt(backend: Any, name: str, rounds: int = 4, profile: Profile = THOROUGH) -> Suspect:
    for number in range(rounds):
        runner = runner_for(backend, CPU, LIBRARY[name], Tally())
        try:
            if suspect := search(runner, profile, number):
                return suspect
        finally:
            runner.close()
    raise AssertionError(f"not found in {rounds} rounds")


def test_odd_sizes() -> None:
    suspect = hunt(LyingBackend("odd sizes"), "pointwise.chain")
    assert suspect.kind is Kind.WRONG_RESULT
    assert len(suspect.example.calls) == 1
    assert dict(suspect.example.calls[0].dims) == {"b": 2, "n": 3}
    assert {given.layout for given in suspect.example.calls[0].given} == {"contiguous"}


def test_stride_zero() -> None:
    suspect = hunt(LyingBackend("stride 0"), "pointwise.chain")
    last = suspect.example.calls[-1]
    assert dict(last.dims) == {"b": 2, "n": 2}
    assert sorted(given.layout for given in last.given).count("contiguous") == len(last.given) - 1
    assert any(given.layout.startswith("expanded") for given in last.given)


def test_size_one() -> None:
    suspect = hunt(LyingBackend("size 1"), "pointwise.chain")
    assert sorted(suspect.example.calls[-1].dims.values()) == [1, 2]


def test_only_on_the_third_call() -> None:
    suspect = hunt(LyingBackend("third call"), "pointwise.chain")
    assert len(suspect.example.calls) == 3
    assert all(size <= 2 for call in suspect.example.calls for size in call.dims.values())
    assert all(given.values == "as declared" for call in suspect.example.calls for given in call.given)


def test_mutation_lost_where_inputs_alias() -> None:
    suspect = hunt(LyingBackend("aliased"), "mutation.only_effect")
    assert suspect.kind is Kind.LOST_MUTATION
    last = suspect.example.calls[-1]
    assert dict(last.dims) == {"m": 2, "n": 2}
    assert last.given[1].shares == 0 and last.given[0].layout == "contiguous"


def test_the_tail_of_a_vector() -> None:
    suspect = hunt(LyingBackend("tail"), "pointwise.chain")
    sizes = suspect.example.calls[-1].dims
    assert 64 < sizes["b"] * sizes["n"] < 160 and {given.layout for given in suspect.example.calls[-1].given} == {
        "contiguous"
    }


def test_a_dim_of_size_zero() -> None:
    suspect = hunt(LyingBackend("size 0"), "reduction.row_sum")
    assert sorted(suspect.example.calls[-1].dims.values()) == [0, 2]


def test_three_dims_in_another_order() -> None:
    suspect = hunt(LyingBackend("permuted"), "norm.rmsnorm")
    assert suspect.example.calls[-1].given[0].layout in ("transposed", "permuted")


def test_a_storage_offset() -> None:
    suspect = hunt(LyingBackend("offset"), "pointwise.chain")
    assert sorted(given.layout for given in suspect.example.calls[-1].given)[-1] == "offset"


def test_sixteen_bits() -> None:
    suspect = hunt(LyingBackend("half"), "pointwise.chain")
    assert suspect.example.calls[-1].dtype in ("float16", "bfloat16")
    assert dict(suspect.example.calls[-1].dims) == {"b": 2, "n": 2}


def test_an_expanded_input_beside_one_that_is_written() -> None:
    suspect = hunt(LyingBackend("expanded beside written"), "mutation.only_effect")
    assert suspect.kind is Kind.LOST_MUTATION
    last = suspect.example.calls[-1]
    assert last.given[0].layout == "contiguous" and last.given[1].layout.startswith("expanded")


def without_guards(*dropped: str) -> Any:
    """torch.compile, with guards of some kinds dropped by its own public filter."""

    def door(fn: Any) -> Any:
        keep = lambda guards: [g.guard_type not in dropped for g in guards]
        return torch.compile(fn, backend="eager", options={"guard_filter_fn": keep})

    return door


def test_a_dropped_guard_gives_stale_answers() -> None:
    found = search_guards(
        LIBRARY["dynamic.shape_arithmetic"], without_guards("TENSOR_MATCH", "SHAPE_ENV", "DUPLICATE_INPUT"), examples=30
    )
    assert found is not None
    example, _ = found
    assert len(example.calls) == 2, [shown(call) for call in example.calls]


def blind(remembered: Any) -> Any:
    """A front end that captures once for all inputs in which `remembered` is the same, and is right for the first of them."""

    def door(fn: Any) -> Any:
        compiled, first = torch.compile(fn, backend="eager"), {}

        def call(*inputs: Any) -> Any:
            given = first.setdefault(remembered(inputs), [x for x in inputs if not isinstance(x, torch.Tensor)])
            numbers = iter(given)
            return compiled(*(x if isinstance(x, torch.Tensor) else next(numbers) for x in inputs))

        return call

    return door


@pytest.mark.parametrize(
    "remembered",
    [
        pytest.param(lambda inputs: next(abs(x) for x in inputs if not isinstance(x, torch.Tensor)), id="sign"),
        pytest.param(lambda inputs: next(int(x) for x in inputs if not isinstance(x, torch.Tensor)), id="type"),
    ],
)
def test_a_number_whose_guard_forgets(remembered: Any) -> None:
    found = search_guards(LIBRARY["pointwise.scalar_argument"], blind(remembered), examples=30)
    assert found is not None and found[1].kind is Kind.WRONG_RESULT, found
    assert len(found[0].calls) == 2, [shown(call) for call in found[0].calls]


def test_wrong_only_after_a_mode_change() -> None:
    """Right with gradients, right in inference mode; wrong in inference mode after gradients."""

    def door(fn: Any) -> Any:
        compiled, modes = torch.compile(fn, backend="eager"), set()

        def call(*inputs: Any) -> Any:
            modes.add((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
            out = compiled(*inputs)
            stale = torch.is_inference_mode_enabled() and (True, False) in modes
            return torch.utils._pytree.tree_map(lambda x: x + 1, out) if stale else out

        return call

    found = search_guards(LIBRARY["pointwise.chain"], door, examples=30)
    assert found is not None and found[1].kind is Kind.WRONG_RESULT, found
    assert [call.mode for call in found[0].calls] == ["grad", "inference"], [shown(call) for call in found[0].calls]


def test_an_extra_recompile_is_seen() -> None:
    """A front end that forgets what it captured."""

    def forgetful(fn: Any) -> Any:
        compiled = torch.compile(fn, backend="eager")

        def call(*inputs: Any) -> Any:
            torch._dynamo.reset()
            return compiled(*inputs)

        return call

    found = search_guards(LIBRARY["pointwise.chain"], forgetful, examples=10)
    assert found is not None and found[1].kind is Kind.EXTRA_RECOMPILE
    assert len(found[0].calls) == 2


@pytest.mark.parametrize(
    "name",
    [
        "dynamic.shape_arithmetic",
        "pointwise.scalar_argument",
        pytest.param("pointwise.chain", marks=pytest.mark.slow),
        pytest.param("dynamic.graph_break", marks=pytest.mark.slow),
    ],
)
def test_healthy_guards_raise_no_alarm(name: str) -> None:
    assert search_guards(LIBRARY[name], examples=10) is None


# ------------------------------------------------------------------------- guards, with Inductor behind them


def inductor(*dropped: str) -> Any:
    keep = lambda guards: [g.guard_type not in dropped for g in guards]
    return lambda fn: torch.compile(fn, options={"guard_filter_fn": keep} if dropped else {})


@pytest.mark.slow
def test_inductor_captures_again_exactly_when_it_must() -> None:
    assert search_guards(LIBRARY["pointwise.chain"], inductor(), examples=2, compiled=True) is None


@pytest.mark.slow
def test_a_guard_that_inductor_lost_is_found() -> None:
    door = inductor("TENSOR_MATCH", "SHAPE_ENV", "DUPLICATE_INPUT")
    found = search_guards(LIBRARY["dynamic.shape_arithmetic"], door, examples=6, compiled=True)
    assert found is not None and len(found[0].calls) == 2 and found[1].check == "FUZ001", found
    assert replayed(found[0], SimpleNamespace(compile_entry=door)), "the sequence alone shows it again"


def played(door: Any, *calls: Any) -> Any:
    return played_through(LIBRARY["pointwise.chain"], tuple(calls), door, compiled=True)


@pytest.fixture
def first() -> Any:
    from conformance.fuzz.example import Call
    from conformance.fuzz.strategies import plain

    micrograph = LIBRARY["pointwise.chain"]
    return Call(dict(micrograph.dims), plain(micrograph).given)


@pytest.mark.slow
def test_a_cache_that_lost_what_it_had_is_found(first: Any) -> None:
    """After a restart the program is in the cache; with the caches off it is compiled again."""
    assert played(inductor(), first, replace(first, stance="restart")) is None
    with torch._inductor.config.patch(fx_graph_cache=False), torch._functorch.config.patch(enable_autograd_cache=False):
        assert played(inductor(), first, replace(first, stance="restart")) is None, (
            "a cache that is off promises nothing"
        )

    from torch._inductor.codecache import FxGraphCache

    keys = itertools.count()
    original = FxGraphCache.prepare_key

    def forgetful(*args: Any, **more: Any) -> Any:
        (key, debug), rest = (found := original(*args, **more))[0] or ("", []), found[1:]
        return ((f"{key}{next(keys)}", debug), *rest)

    with (
        patch.object(FxGraphCache, "prepare_key", forgetful),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        found = played(inductor(), first, replace(first, stance="restart"))
    assert found is not None and found[1].kind is Kind.CACHE_MISS and found[0] == 2


def test_a_cache_whose_key_forgets_sizes_is_found(first: Any) -> None:
    from torch._inductor.codecache import FxGraphCache

    original = FxGraphCache.prepare_key

    def blind(*args: Any, **more: Any) -> Any:
        (_, debug), *rest = original(*args, **more)
        return (("fthesame", debug), *rest)

    other = replace(first, dims={**first.dims, "b": first.dims["b"] + 2})
    with patch.object(FxGraphCache, "prepare_key", blind), torch._functorch.config.patch(enable_autograd_cache=False):
        found = played(inductor(), first, other)
    assert found is not None and found[0] == 2


def test_stances_are_held_to(first: Any) -> None:
    other = replace(first, dims={**first.dims, "b": first.dims["b"] + 2})
    names = ("force_eager", "eager_on_recompile", "fail_on_recompile")
    calls = [first, *(replace(call, stance=name) for name in names for call in (first, other))]
    assert played_through(LIBRARY["pointwise.chain"], tuple(calls), None) is None

    def deaf(fn: Any) -> Any:
        """A front end that does not hear of stances."""
        compiled = torch.compile(fn, backend="eager")

        def call(*inputs: Any) -> Any:
            with torch.compiler.set_stance("default"):
                return compiled(*inputs)

        return call

    for name in names:
        found = played_through(LIBRARY["pointwise.chain"], (first, replace(other, stance=name)), deaf)
        assert found is not None and found[1].kind in (Kind.EXTRA_RECOMPILE, Kind.MISSED_RECOMPILE), name


def test_the_recompile_limit_is_held_to(first: Any) -> None:
    """After so many captures there are no more, and the answers are still right."""
    sizes = [{**first.dims, "b": size} for size in (first.dims["b"], 1, first.dims["b"] + 2)]
    calls = tuple(replace(first, dims=dims, mode=mode) for mode in ("", "grad", "inference") for dims in sizes)
    assert played_through(LIBRARY["pointwise.chain"], calls, None, limit=3) is None

    def lenient(fn: Any) -> Any:
        compiled = torch.compile(fn, backend="eager")

        def call(*inputs: Any) -> Any:
            with torch._dynamo.config.patch(recompile_limit=64):
                return compiled(*inputs)

        return call

    found = played_through(LIBRARY["pointwise.chain"], calls, lenient, limit=3)
    assert found is not None and found[1].kind is Kind.EXTRA_RECOMPILE


def test_the_model_waits_for_a_missed_recompile() -> None:
    player = Player(LIBRARY["pointwise.chain"], lambda fn: fn)  # compiles nothing, ever
    call = runner_for(LyingBackend("none"), CPU, LIBRARY["pointwise.chain"], Tally()).micrograph
    from conformance.fuzz.example import Call
    from conformance.fuzz.strategies import plain

    finding = player.play(Call(dict(call.dims), plain(call).given))
    assert finding is not None and finding.kind is Kind.MISSED_RECOMPILE


def test_a_healthy_backend_raises_no_alarm() -> None:
    for name in ("pointwise.chain", "mutation.only_effect", "norm.rmsnorm", "indexing.top_k"):
        runner = runner_for(LyingBackend("none"), CPU, LIBRARY[name], Tally())
        assert search(runner, replace(THOROUGH, forms=6, examples=40), 0) is None
        runner.close()


def test_in_inductor_an_odd_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same fault, planted where Inductor calls what it made."""
    from torch._inductor.output_code import CompiledFxGraph

    original = CompiledFxGraph.__call__

    def faulty(self: Any, inputs: Any) -> Any:
        odd = any(isinstance(x, torch.Tensor) and x.dim() and x.shape[-1] % 2 for x in inputs)
        out = original(self, inputs)
        return [x + 1 if isinstance(x, torch.Tensor) else x for x in out] if odd else out

    monkeypatch.setattr(CompiledFxGraph, "__call__", faulty)
    few = Profile("test", forms=1, examples=30, static=0, minutes=2.0)
    suspect = hunt(backends.get("inductor"), "pointwise.chain", profile=few)
    assert dict(suspect.example.calls[-1].dims) == {"b": 2, "n": 3}


def test_every_fault_has_a_test() -> None:
    here = {
        "none",
        "odd sizes",
        "stride 0",
        "size 1",
        "third call",
        "aliased",
        "segfault",
        "hang",
        "deaf hang",
        "lost gpu",
    }
    assert {*FAULTS} == here | {"tail", "size 0", "permuted", "offset", "half", "expanded beside written"}
