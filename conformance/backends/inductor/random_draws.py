"""Random numbers as users get them: with Inductor's own generator, and not with eager's (`fallback_random`).

The numbers cannot be eager's, but what they promise can be checked: equal seeds give equal numbers, other seeds and later calls give others,
mean and spread are eager's, draws that are independent in eager are independent, and the backward graph uses the numbers of its forward.
All seeds are fixed, so that a verdict does not depend on luck.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from conformance.backends.base import Case
from conformance.backends.inductor.compiled import empty_caches
from conformance.backends.inductor.kernel_store import kernel_store
from conformance.backends.inductor.seam import seam
from conformance.micrograph import Micrograph
from conformance.target import Target

CALLS = 60
LIMIT = 6.0  # standard errors
STEP = 1e-2  # of the numeric derivative

Draw = Callable[[], list[torch.Tensor]]


def probe(micrograph: type[Micrograph], target: str) -> list[str]:
    """What is wrong with the random numbers of the default settings. Called in a process that has compiled nothing."""
    case = Case(micrograph, Target.parse(target))
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-draws-"))
        stack.enter_context(empty_caches(Path(folder)))
        stack.enter_context(kernel_store())
        stack.enter_context(seam.config.patch(fallback_random=False))
        eager, compiled = case.module(), torch.compile(case.module())
        drawn = _outputs(compiled, case)
        return [*_seeds(drawn), *_distribution(_outputs(eager, case), drawn), *_backward(compiled, case)]


def _outputs(fn: Callable[..., Any], case: Case) -> Draw:
    def draw() -> list[torch.Tensor]:
        with torch.no_grad():
            given = fn(*case.inputs(0))
        flat = given if isinstance(given, (tuple, list)) else [given]
        return [value.double().flatten() for value in flat if isinstance(value, torch.Tensor)]

    return draw


def _seeds(draw: Draw) -> Iterator[str]:
    torch.manual_seed(7)
    first, second = draw(), draw()
    torch.manual_seed(7)
    again = draw()
    torch.manual_seed(8)
    other = draw()
    for index, value in enumerate(first):
        if not torch.equal(value, again[index]):
            yield f"output {index}: equal seeds give other numbers"
        if torch.equal(value, other[index]):
            yield f"output {index}: another seed gives the same numbers"
        if torch.equal(value, second[index]):
            yield f"output {index}: the next call draws the same numbers again"


def _distribution(eager: Draw, compiled: Draw) -> Iterator[str]:
    torch.manual_seed(11)
    want = [torch.stack(values) for values in zip(*(eager() for _ in range(CALLS)), strict=True)]
    torch.manual_seed(11)
    got = [torch.stack(values) for values in zip(*(compiled() for _ in range(CALLS)), strict=True)]
    for index, (expected, shown) in enumerate(zip(want, got, strict=True)):
        if expected.shape != shown.shape:
            continue  # the oracle's business
        for name, power in (("mean", 1), ("mean square", 2)):
            left, right = (_noise(expected) ** power, _noise(shown) ** power) if power == 2 else (expected, shown)
            error = ((left.var() + right.var()) / left.numel()).sqrt()
            if (left.mean() - right.mean()).abs() > LIMIT * error + 1e-12:
                yield f"output {index}: the {name} of {left.numel()} numbers is {float(right.mean()):.4g}, eager's is {float(left.mean()):.4g}"
        if abs(_correlation(shown[:-1], shown[1:]) - _correlation(expected[:-1], expected[1:])) > _bound(shown[1:]):
            yield f"output {index}: the numbers of a call depend on those of the call before"
        for other in range(index):
            if want[other].shape == expected.shape:
                apart = abs(_correlation(got[other], shown) - _correlation(want[other], expected))
                if apart > _bound(shown):
                    yield f"outputs {other} and {index}: their correlation is off by {apart:.2f}: draws that are independent in eager are not"


def _noise(values: torch.Tensor) -> torch.Tensor:
    """What is random about each element: its distance from its mean over the calls."""
    return values - values.mean(0)


def _correlation(left: torch.Tensor, right: torch.Tensor) -> float:
    one, two = _noise(left), _noise(right)
    norm = float(one.norm() * two.norm())
    return float((one * two).sum()) / norm if norm else 0.0


def _bound(values: torch.Tensor) -> float:
    return LIMIT * (2.0 / values.numel()) ** 0.5


def _backward(fn: Callable[..., Any], case: Case) -> Iterator[str]:
    """The derivative along a direction, with the same seed, is the gradient's: only if both graphs drew the same numbers."""
    inputs = case.inputs(0)
    index = next((i for i, spec in enumerate(case.micrograph.inputs) if getattr(spec, "grad", False)), None)
    if index is None:
        return
    weights: list[torch.Tensor] = []

    def weighted(moved: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(13)
        given = fn(*inputs[:index], moved, *inputs[index + 1 :])
        outputs = [
            value for value in (given if isinstance(given, (tuple, list)) else [given]) if _differentiable(value)
        ]
        if not weights:
            generator = torch.Generator().manual_seed(17)
            weights.extend(torch.rand(value.shape, generator=generator).to(value) + 0.5 for value in outputs)
        return sum((value * weight).sum() for value, weight in zip(outputs, weights, strict=True))  # type: ignore[return-value]

    start = inputs[index].detach().clone().requires_grad_()
    total = weighted(start)
    if not total.requires_grad:
        return
    total.backward()
    assert start.grad is not None
    direction = torch.rand(start.shape, generator=torch.Generator().manual_seed(19)).to(start) + 0.5
    ahead, behind = (
        float(weighted((start.detach() + sign * STEP * direction).requires_grad_()).detach()) for sign in (1, -1)
    )
    numeric, exact = (ahead - behind) / (2 * STEP), float((start.grad * direction).sum())
    if abs(numeric - exact) > 0.02 * max(abs(numeric), abs(exact)) + 0.05:
        yield f"the gradient of input {index} is not the derivative of the forward with the same seed: {exact:.4g}, by differences {numeric:.4g}"


def _differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point
