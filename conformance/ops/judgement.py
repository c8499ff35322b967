"""Is what a compiled call left behind what eager leaves? The oracle says so; here stands what an operator's documentation leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from conformance import oracle
from conformance.ops.call import Call
from conformance.ops.form import in_layout
from conformance.ops.operator import Operator
from conformance.oracle import Difference, Outcome, Reference
from conformance.oracle.comparison import FEW
from conformance.torch_seam import pytree
from conformance.verdict import Kind

OnTarget = Callable[[torch.nn.Module], Callable[..., Any]]  # a module as a target runs it uncompiled
VALUES = (Kind.WRONG_RESULT, Kind.NUMERIC_DRIFT, Kind.LOST_MUTATION)
WIDE = {torch.complex64: torch.complex128, torch.float32: torch.float64, torch.float16: torch.float64}


class EagerRefuses(Exception):
    """Eager does not take the call: nothing can be said of a compiler."""


@dataclass
class Expected:
    """What eager gives for a call, and for its second one where there is one."""

    call: Call
    first: Reference
    second: Reference | None = None


def expected(call: Call, on_target: OnTarget | None = None) -> Expected:
    """Run the call in eager, on the target where that is not the CPU. Raises `EagerRefuses` where eager does not take it, or where the
    answer is not specified."""
    function = on_target(call.module) if on_target is not None else call.module
    first = _reference(call, call.tensors, function)
    return Expected(call, first, _reference(call, call.again, function) if call.again else None)


def _reference(call: Call, tensors: tuple[torch.Tensor, ...], function: Callable[..., Any]) -> Reference:
    eager = oracle.run(function, oracle.clone_inputs(tensors))
    if call.raises:
        if eager.error is None:
            raise EagerRefuses("eager takes the call")
        return Reference(eager, None)
    if eager.error is not None:
        raise EagerRefuses(str(eager.error))
    for index in oracle.mutated(eager, tensors):
        if _overlaps(tensors[index]):
            raise EagerRefuses("it writes to elements that share memory: which write is the last is not specified")
    if any(isinstance(value, torch.Tensor) and value.layout is not torch.strided for value in eager.outputs):
        raise EagerRefuses("the result is not strided")
    return Reference(eager, None)


def _overlaps(tensor: torch.Tensor) -> bool:
    places = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return places < tensor.numel()


def outcomes(
    calls: Sequence[Call], results: Sequence[Any], inputs: Sequence[tuple[torch.Tensor, ...]]
) -> list[Outcome]:
    """What each call of a wide program left behind. Gradients of all calls are taken at once: a compiled backward pass runs once."""
    if any(call.grad for call in calls):
        losses = [loss for call, result in zip(calls, results, strict=True) if (loss := _loss(result)) is not None]
        torch.autograd.backward(losses)
    found = []
    for call, result, given in zip(calls, results, inputs, strict=True):
        flat = pytree.tree_leaves(result)
        bare = pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, result)
        outcome = oracle.run(lambda *_, bare=bare: bare, tuple(tensor.detach() for tensor in given))
        outcome.requires_grad = [isinstance(value, torch.Tensor) and value.requires_grad for value in flat]
        if call.grad:
            outcome.grads = {
                f"input {index}": None if tensor.grad is None else tensor.grad.detach().clone()
                for index, tensor in enumerate(given)
                if tensor.requires_grad
            }
        found.append(outcome)
    return found


def _loss(result: Any) -> torch.Tensor | None:
    """The projection whose gradients the oracle takes."""
    generator = torch.Generator().manual_seed(oracle.SEED)
    loss: Any = None
    for value in pytree.tree_leaves(result):
        if isinstance(value, torch.Tensor) and value.requires_grad:
            weights = torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value.device, value.dtype)
            part = (value * weights).sum()
            loss = part if loss is None else loss + part
    return loss


def differences(
    operator: Operator,
    call: Call,
    outcome: Outcome,
    ref: Reference,
    again: bool = False,
    layouts: bool = True,
) -> list[Difference]:
    """Where a compiled call is not what eager gives; empty where it is, or where the documentation leaves the difference open.
    layouts: strides and shared memory count."""
    if call.raises:
        return oracle.compare(outcome, ref)
    if outcome.error is None:
        outcome.drawn = ref.eager.drawn
        if ref.eager.drawn or not operator.compares_values():
            outcome = without_values(outcome, ref.eager)
    found = oracle.compare(outcome, ref, strides=layouts, aliases=layouts)
    if any(one.kind in VALUES for one in found):
        tensors = call.again if again else call.tensors
        ref = replace(ref, exact=exact(call, tensors))
        found = oracle.compare(outcome, ref, strides=layouts, aliases=layouts)
    if found and all(one.kind in VALUES for one in found):
        if _within(outcome, ref.eager, operator.tolerance(call.key.dtype)) or not _repeatable(call, ref, again):
            return []
        if operator.breaks_ties() and _only_ties(call, outcome, ref.eager, again):
            return []
        # The error of few elements, within tolerance and larger than eager's, is chance.
        if all(one.kind is Kind.NUMERIC_DRIFT for one in found) and _largest(ref.eager) < FEW:
            return []
    if call.key.form == "special" and outcome.error is None:
        if not found and not operator.leaves_sign_of_zero_open():
            found = signs_of_zero(outcome, ref.eager)
        if found and not _of_one_mind(call, ref):
            return []
    return found


def _largest(outcome: Outcome) -> int:
    """The elements of the largest tensor of an outcome."""
    values = [*outcome.outputs, *outcome.inputs.values(), *outcome.grads.values()]
    return max((value.numel() for value in values if isinstance(value, torch.Tensor)), default=0)


def without_values(outcome: Outcome, eager: Outcome) -> Outcome:
    """The outcome with eager's values wherever size and dtype are the same: only they are compared then."""

    def taken(got: Any, want: Any) -> Any:
        both = isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)
        return want if both and (got.shape, got.dtype) == (want.shape, want.dtype) else got

    if len(outcome.outputs) != len(eager.outputs):
        return outcome
    outputs = [taken(got, want) for got, want in zip(outcome.outputs, eager.outputs, strict=True)]
    inputs = {name: taken(value, eager.inputs.get(name)) for name, value in outcome.inputs.items()}
    grads = {name: taken(value, eager.grads.get(name)) for name, value in outcome.grads.items()}
    return replace(outcome, outputs=outputs, inputs=inputs, grads=grads)


def exact(call: Call, tensors: tuple[torch.Tensor, ...]) -> Outcome | None:
    """The same call in fp64, or complex128; None where it cannot be had."""
    if not any(tensor.is_complex() for tensor in tensors):
        found = oracle.in_double(call.module, tensors)
    else:
        wide = tuple(tensor.to(WIDE.get(tensor.dtype, tensor.dtype)) for tensor in oracle.clone_inputs(tensors))
        found = oracle.run(call.module, wide)
    return found if found is not None and found.error is None else None


def _within(outcome: Outcome, eager: Outcome, tolerance: tuple[float, float]) -> bool:
    """Is every value within the tolerance that the operator's own tests have?"""
    rtol, atol = tolerance
    if (not rtol and not atol) or len(outcome.outputs) != len(eager.outputs):
        return False
    pairs = [*zip(outcome.outputs, eager.outputs, strict=True)]
    pairs += [(outcome.inputs[name], want) for name, want in eager.inputs.items() if name in outcome.inputs]
    pairs += [(outcome.grads.get(name), want) for name, want in eager.grads.items()]
    for got, want in pairs:
        if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor):
            if got.shape != want.shape or got.dtype != want.dtype:
                return False
            if not torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
                return False
        elif got is not want and got != want:
            return False
    return True


def _repeatable(call: Call, ref: Reference, again: bool) -> bool:
    """Does eager itself give the same values twice?"""
    once_more = oracle.run(call.module, oracle.clone_inputs(call.again if again else call.tensors))
    once_more.drawn = ref.eager.drawn
    return not oracle.compare(once_more, ref)


def _of_one_mind(call: Call, ref: Reference) -> bool:
    """Does eager give the same for elements that lie apart? Its vectorized and its scalar code may differ at special values, and then
    neither is what a compiler must give."""
    apart = [in_layout(tensor, "strided") for tensor in call.tensors]
    if any(one is None for one in apart):
        return True
    other = oracle.run(call.module, tuple(one for one in apart if one is not None))
    if other.error is not None:
        return True
    same = not oracle.compare(other, ref, strides=False)
    return same and not signs_of_zero(other, ref.eager)


def _only_ties(call: Call, outcome: Outcome, eager: Outcome, again: bool) -> bool:
    """Do only indices differ, and lead to equal elements? Which of several equal elements is named is not specified."""
    pairs = [pair for pair in zip(outcome.outputs, eager.outputs, strict=True) if isinstance(pair[1], torch.Tensor)]
    if len(pairs) == 2:
        (got, want), _ = pairs
        return torch.equal(torch.nan_to_num(got), torch.nan_to_num(want))
    source = (call.again if again else call.tensors)[0]
    dim = next((one for one in (*call.args[1:], call.kwargs.get("dim", -1)) if type(one) is int), -1)
    got, want = (source.take_along_dim(index, dim) if source.dim() else source for index in pairs[0])
    return torch.equal(torch.nan_to_num(got), torch.nan_to_num(want))


def signs_of_zero(outcome: Outcome, eager: Outcome) -> list[Difference]:
    """Zeros whose sign is not eager's: the reciprocal of one is another infinity."""
    found = []
    for index, (got, want) in enumerate(zip(outcome.outputs, eager.outputs, strict=True)):
        if isinstance(want, torch.Tensor) and want.is_floating_point() and got.shape == want.shape:
            wrong = int(((want == 0) & (got == 0) & (torch.signbit(want) != torch.signbit(got))).sum())
            if wrong:
                detail = f"{wrong} of {want.numel()} elements are zeros of the other sign"
                found.append(Difference(Kind.WRONG_RESULT, f"output {index}", detail))
    return found
