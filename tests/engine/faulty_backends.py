"""Backends that do everything right but one thing. The null backend does everything right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from conformance.backends.base import Backend, Case, Compiled
from conformance.oracle import clone_inputs
from conformance.stage import Stage
from conformance.target import Target
from conformance.trace import Observation

HEALTHY: dict[Stage, dict[str, Any]] = {
    Stage.CAPTURE: {"graphs": 1, "breaks": 0},
    Stage.DECOMPOSITION: {"composite": [], "writes": []},
    Stage.POSTGRAD: {"without_metadata": 0},
    Stage.FUSION: {"kernels": 1},
    Stage.CODEGEN: {"programs": 1},
    Stage.CACHE: {
        "first": {"fx_miss": 1},
        "again": {"fx_hit": 1},
        "changed_config": {"fx_miss": 1},
        "fresh_process": {"fx_hit": 1},
    },
}

Lie = Callable[["NullCompiled", tuple[Any, ...]], Any]


class NullCompiled(Compiled):
    """Runs eager and reports healthy stages."""

    def __init__(self, case: Case, lie: Lie | None = None, facts: dict[Stage, dict[str, Any]] | None = None) -> None:
        self.module = case.module()
        self.lie, self.facts, self.calls = lie, facts or {}, 0
        self.memory: dict[str, Any] = {}

    def __call__(self, *inputs: Any) -> Any:
        self.calls += 1
        return self.lie(self, inputs) if self.lie else self.module(*inputs)

    def observe(self, stage: Stage) -> Observation:
        return Observation({**HEALTHY.get(stage, {}), **self.facts.get(stage, {})})

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        return self.module if stage.order < Stage.RUNTIME.order else None


class NullBackend(Backend):
    name = "null"

    def __init__(self, lie: Lie | None = None, facts: dict[Stage, dict[str, Any]] | None = None) -> None:
        self.lie, self.facts = lie, facts

    def versions(self) -> dict[str, str]:
        return {"null": "1"}

    def unavailable(self, target: Target) -> dict[Stage, str]:
        return {}

    def compile(self, case: Case) -> Compiled:
        return NullCompiled(case, self.lie, self.facts)


def changed(change: Callable[[torch.Tensor], torch.Tensor]) -> Lie:
    """Every float output is changed."""

    def lie(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
        result = compiled.module(*inputs)
        return pytree.tree_map_only(torch.Tensor, lambda t: change(t) if t.is_floating_point() else t, result)

    return lie


def drops_an_output(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    result = compiled.module(*inputs)
    return result[:-1] if isinstance(result, tuple) else (result,)


def loses_mutations(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    return compiled.module(*clone_inputs(inputs))


def forgets_buffers(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    saved = {name: buffer.clone() for name, buffer in compiled.module.named_buffers()}
    result = compiled.module(*inputs)
    for name, buffer in compiled.module.named_buffers():
        buffer.copy_(saved[name])
    return result


def returns_stale_storage(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    """The same memory holds the outputs of every call."""
    flat, spec = pytree.tree_flatten(compiled.module(*inputs))
    kept = compiled.memory.setdefault("outputs", [t.clone() if isinstance(t, torch.Tensor) else t for t in flat])
    for old, new in zip(kept, flat, strict=True):
        if isinstance(old, torch.Tensor):
            old.copy_(new)
    return pytree.tree_unflatten(kept, spec)


def returns_the_first_answer(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    result = compiled.memory.setdefault("first", compiled.module(*inputs))
    return pytree.tree_map_only(torch.Tensor, torch.clone, result)


def wrong_on_the_third_call(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    result = compiled.module(*inputs)
    return pytree.tree_map_only(torch.Tensor, lambda t: t + 1, result) if compiled.calls == 3 else result


def wrong_from_the_fifth_call(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    result = compiled.module(*inputs)
    return pytree.tree_map_only(torch.Tensor, lambda t: t + 1, result) if compiled.calls >= 5 else result


def takes_turns_with_two_storages(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    """Every call overwrites the outputs of the last but one."""
    flat, spec = pytree.tree_flatten(compiled.module(*inputs))
    kept = compiled.memory.setdefault(
        f"outputs {compiled.calls % 2}", [t.clone() if isinstance(t, torch.Tensor) else t for t in flat]
    )
    for old, new in zip(kept, flat, strict=True):
        if isinstance(old, torch.Tensor):
            old.copy_(new)
    return pytree.tree_unflatten(kept, spec)


def saves_in_one_place(compiled: NullCompiled, inputs: tuple[Any, ...]) -> Any:
    """The gradients of a call are right as long as no other call comes before them."""
    mark = compiled.memory["mark"] = object()
    flat, spec = pytree.tree_flatten(compiled.module(*inputs))

    def later(gradient: torch.Tensor) -> torch.Tensor:
        return gradient if compiled.memory["mark"] is mark else gradient * 2.0

    for value in flat:
        if isinstance(value, torch.Tensor) and value.requires_grad:
            value.register_hook(later)
    return pytree.tree_unflatten(flat, spec)
