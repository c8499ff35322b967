"""Planted faults are found within two minutes, and shrunk to the smallest case that shows them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.fuzz.guards import Player, search_guards, shown
from conformance.fuzz.runner import Tally, runner_for
from conformance.fuzz.search import Profile, Suspect, search
from conformance.micrograph import load
from conformance.target import CPU
from conformance.verdict import Kind
from tests.fuzz.lying import FAULTS, LyingBackend

THOROUGH = Profile("test", forms=12, examples=150, static=0, minutes=2.0)
LIBRARY = load()


@pytest.fixture(autouse=True)
def two_minutes() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < 120


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


def without_guards(*dropped: str) -> Any:
    """torch.compile, with guards of some kinds dropped by its own public filter."""

    def door(fn: Any) -> Any:
        keep = lambda guards: [g.guard_type not in dropped for g in guards]
        return torch.compile(fn, backend="eager", options={"guard_filter_fn": keep})

    return door


def test_a_dropped_guard_gives_stale_answers() -> None:
    found = search_guards(LIBRARY["dynamic.shape_arithmetic"], without_guards("TENSOR_MATCH", "SHAPE_ENV", "DUPLICATE_INPUT"), examples=30)
    assert found is not None
    example, _ = found
    assert len(example.calls) == 2, [shown(call) for call in example.calls]


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


def test_healthy_guards_raise_no_alarm() -> None:
    assert search_guards(LIBRARY["pointwise.chain"], examples=10) is None


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
    assert {*FAULTS} == {"none", "odd sizes", "stride 0", "size 1", "third call", "aliased", "segfault"}
