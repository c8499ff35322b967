"""Does the front end capture again exactly when it must? Probed with a backend that runs what was captured as it is.

Guards are Dynamo's and are the same whatever compiles the graph, so that a probe costs a capture and no code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch

from conformance import oracle
from conformance.backends.base import Case
from conformance.backends.inductor.seam import seam
from conformance.inputs import Scalar, Tensor

MOST_CAPTURES = 64  # of one function: more than any micrograph has things to change


class Counting:
    """A backend that compiles nothing, counts, and keeps the first graph."""

    def __init__(self) -> None:
        self.count = 0
        self.first: torch.fx.GraphModule | None = None

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        self.count += 1
        self.first = self.first or gm
        return gm.forward


def sizes_to_probe(size: int) -> tuple[int, int]:
    """A second and a third size: of the same parity, and neither 0 nor 1, which are always special."""
    return size + 2, size + 4


def probe(case: Case) -> dict[str, Any]:
    """`recompiles`: dim → how often it captured again over three sizes. `guarded`: what was changed → was it captured again.
    `stale`: where the answer was not eager's."""
    stale: list[str] = []
    recompiles = {dim: _over_sizes(case, dim, stale) for dim in case.micrograph.contract.capture.recompiles}
    return {"recompiles": recompiles, "guarded": _over_changes(case, stale), "stale": stale}


def _over_sizes(case: Case, dim: str, stale: list[str]) -> int:
    size = case.micrograph.dims[dim]
    module, counting = case.module(), Counting()
    compiled = _compiled(module, counting)
    first = 0
    for seed, value in enumerate((size, *sizes_to_probe(size))):
        stale += _stale(compiled, module, case.inputs(seed, **{dim: value}), case, f"{dim} = {value}")
        first = first or counting.count
    return counting.count - first


def _over_changes(case: Case, stale: list[str]) -> dict[str, bool]:
    """Captured once as given; then one thing is changed at a time, each beside all that was captured before."""
    module, counting = case.module(), Counting()
    with seam.dynamo_config.patch(recompile_limit=MOST_CAPTURES):
        compiled = _compiled(module, counting)
        inputs = case.inputs(0)
        stale += _stale(compiled, module, inputs, case, "as given")
        if not counting.count:
            return {}
        # Where the graph broke, which part of it depends on what is not ours to say.
        guarded = _over_kinds(case, compiled, module, counting, stale) if counting.count == 1 else {}
        for what, changed in surroundings(module):
            with changed:
                stale += _stale(compiled, module, inputs, case, what)
        if not any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
            before = counting.count
            with torch.enable_grad():
                compiled(*oracle.clone_inputs(inputs))
            guarded["gradients are on"] = counting.count > before
    return guarded


def _over_kinds(case: Case, compiled: Any, module: Any, counting: Counting, stale: list[str]) -> dict[str, bool]:
    """Change one property of one input that every graph depends on, and expect a new capture."""
    guarded: dict[str, bool] = {}
    for what, changed, must in changes(case, case.inputs(0), counting.first):
        if oracle.run(module, oracle.clone_inputs(changed), module).error is not None:
            continue  # eager does not take it either
        before = counting.count, _frames()
        stale += _stale(compiled, module, changed, case, what)
        if must:
            # What Dynamo looks at again and leaves to eager does not come to the backend.
            guarded[what] = counting.count > before[0] or _frames() > before[1]
    return guarded


def _frames() -> int:
    """How many frames Dynamo has looked at."""
    return int(seam.counters["frames"]["total"])


def surroundings(module: Any) -> Iterator[tuple[str, AbstractContextManager[Any]]]:
    if len(list(module.modules())) > 1 or module.training is False:
        yield f"in {'eval' if module.training else 'training'} mode", _other_mode(module)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point() and tensor.numel():
            yield f"{name} was changed", _moved(tensor)
            break
    for name, value in list(vars(module).items()):
        if type(value) in (bool, int, float) and not name.startswith("_") and name != "training":
            other = (
                not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value * 1.5 + 0.125
            )
            yield f"{name} is {other}", patch.object(module, name, other)


@contextmanager
def _other_mode(module: Any) -> Iterator[None]:
    modes = {part: part.training for part in module.modules()}
    module.train(not module.training)
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


@contextmanager
def _moved(tensor: torch.Tensor) -> Iterator[None]:
    kept = tensor.detach().clone()
    with torch.no_grad():
        tensor.mul_(1.25).add_(0.125)
    try:
        yield
    finally:
        with torch.no_grad():
            tensor.copy_(kept)


def changes(
    case: Case, inputs: tuple[Any, ...], captured: torch.fx.GraphModule | None
) -> Iterator[tuple[str, tuple[Any, ...], bool]]:
    """What is changed, the changed inputs, and whether this must be captured anew (or only be answered rightly)."""
    specs = case.micrograph.inputs
    shared: set[int | None] = {spec.shares for spec in specs if isinstance(spec, Tensor)} - {None}
    for index, (spec, value) in enumerate(zip(specs, inputs, strict=True)):
        if isinstance(spec, Scalar):
            if isinstance(value, bool):
                yield f"input {index} is {not value}", _replaced(inputs, index, not value), True
            elif not isinstance(spec.value, str):
                other = value + 1 if isinstance(value, int) else value * 1.5 + 0.125
                yield f"input {index} is {other}", _replaced(inputs, index, other), False
            continue
        if not isinstance(spec, Tensor) or shared or not value.is_floating_point() or value.numel() < 2 or spec.grad:
            continue
        must = computes_with(captured, value)
        wider = torch.float64 if value.dtype != torch.float64 else torch.float32
        yield f"input {index} is {str(wider)[6:]}", _replaced(inputs, index, value.to(wider)), must
        if (
            value.dim() >= 2
            and value.shape[-1] > 1
            and value.shape[-2] > 1
            and not case.micrograph.contract.capture.dynamic
        ):
            other = value.transpose(-1, -2).contiguous().transpose(-1, -2)
            if other.stride() == value.stride():
                other = value.contiguous()
            if other.stride() != value.stride():
                yield f"input {index} has strides {other.stride()}", _replaced(inputs, index, other), must
        if must:
            shared = {0}  # one tensor is enough: guards are made alike for all


def computes_with(captured: torch.fx.GraphModule | None, value: torch.Tensor) -> bool:
    """Does the captured graph take a tensor like this one? What a program does not compute with, or asks for its device alone, is no input
    of its graph, and need not be guarded."""
    for node in captured.graph.nodes if captured is not None else ():
        known = node.meta.get("example_value", node.meta.get("val")) if node.op == "placeholder" else None
        if node.op == "placeholder" and known is None:
            return True  # the graph does not say
        if isinstance(known, torch.Tensor) and known.dtype == value.dtype and known.dim() == value.dim():
            return True
    return captured is None


def _replaced(inputs: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*inputs[:index], value, *inputs[index + 1 :])


def _compiled(module: Any, backend: Counting) -> Callable[..., Any]:
    seam.reset()
    return torch.compile(module, backend=backend)


def _stale(compiled: Any, module: Any, inputs: tuple[Any, ...], case: Case, what: str) -> list[str]:
    """Is the answer that of an older capture?"""
    reference = oracle.reference(module, inputs, random=True)
    if reference.eager.error is not None:
        return []
    outcome = oracle.run(compiled, oracle.clone_inputs(inputs), module)
    return [f"{what}: {difference}" for difference in oracle.compare(outcome, reference)[:1]]


def guard_kinds(texts: list[str]) -> dict[str, int]:
    """How many guards of each kind, from the guard tree that Dynamo writes to the structured trace."""
    kinds: Counter[str] = Counter()
    for text in texts:
        for line in text.splitlines():
            if "+- " in line:
                kind = line.split("+- ", 1)[1].split(":", 1)[0].strip()
                if kind.isupper() or kind.replace("_", "").isupper():
                    kinds[kind] += 1
    return dict(sorted(kinds.items()))


ADDRESS = re.compile(r"(___check_(?:obj|type)_id\(.*?, )\d+(?=\))|( at )0x[0-9a-f]+")
LATENCY = re.compile(r"^Guard latency = .*\n?", re.MULTILINE)


def without_addresses(text: str) -> str:
    """A guard tree as every process writes it: the addresses of objects and what a check took are those of one process."""
    return LATENCY.sub("", ADDRESS.sub(lambda found: f"{found[1] or found[2]}…", text))
