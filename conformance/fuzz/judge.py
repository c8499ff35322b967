"""Is a difference from eager the compiler's fault? A fuzzer draws what no test would, and where eager's own answer is an accident
of its order or its rounding, another answer is as right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

import torch

from conformance import oracle
from conformance.verdict import Kind

BY_VALUE = {Kind.WRONG_RESULT, Kind.NUMERIC_DRIFT, Kind.LOST_MUTATION}
LARGE = 100.0  # a rounding of what is larger can be larger than one
Eager = Callable[[tuple[Any, ...]], oracle.Outcome]


def judged(
    outcome: oracle.Outcome,
    ref: oracle.Reference,
    inputs: tuple[Any, ...],
    strides: bool = True,
    eager: Eager | None = None,
    ops: Collection[str] = (),
) -> list[oracle.Difference]:
    """Where the outcome differs from eager's by more than the order of summing, or the last bits of the inputs, can explain.
    `ops`: those that eager runs."""
    found = oracle.compare(outcome, ref, strides=strides)
    if not found or any(d.kind not in BY_VALUE for d in found):
        return found
    if attends(ops):
        outcome = _where_defined(outcome, ref.eager)
        if not (found := oracle.compare(outcome, ref, strides=strides)):
            return []
    terms, scattered = _terms(inputs), scatters(ops)
    if ref.exact is not None and all(
        _by_order(g, w, e, terms, scattered) for g, w, e in _together(outcome, ref.eager, ref.exact)
    ):
        return []
    if eager is None:
        return found
    return [] if _contradicts_itself(ref, inputs, eager) or _by_rounding(outcome, ref.eager, inputs, eager) else found


def _contradicts_itself(ref: oracle.Reference, inputs: tuple[Any, ...], eager: Eager) -> bool:
    """Does eager give another answer when it is asked again? It then reads what is not its own, and is no reference."""
    again = [eager(oracle.clone_inputs(inputs)) for _ in range(2)]
    return any(outcome.error is None and bool(oracle.compare(outcome, ref)) for outcome in again)


def attends(ops: Collection[str]) -> bool:
    """Is there attention in a graph that runs these ops: one op for it, or a softmax beside products?"""
    ops = {*ops}
    by_hand = ops & {"aten._softmax", "aten._safe_softmax"} and ops & {
        "aten.mm",
        "aten.bmm",
        "aten.addmm",
        "aten.baddbmm",
    }
    return bool(by_hand) or any("attention" in op for op in ops)


def scatters(ops: Collection[str]) -> bool:
    """Are numbers added up in memory, each addition rounded to the dtype of what is there?"""
    return any(
        word in op
        for op in ops
        for word in ("scatter", "index_add", "index_put", "index_reduce", "embedding_dense_backward")
    )


def _where_defined(outcome: oracle.Outcome, eager: oracle.Outcome) -> oracle.Outcome:
    """With eager's NaN where eager has one. Attention to no key (all scores are minus infinity), or by infinite scores, has no
    meaning: by hand it is NaN, upstream's own attention ops say 0 or NaN, one otherwise than the other, and a compiler may
    put one of them in place of what was written by hand."""

    def defined(got: Any, want: Any) -> Any:
        fits = _floats(got, want) and got.dtype == want.dtype and got.device == want.device
        return torch.where(want.isnan(), want, got) if fits else got

    outputs = [defined(got, want) for got, want in zip(outcome.outputs, eager.outputs, strict=True)]
    grads = {name: defined(got, eager.grads.get(name)) for name, got in outcome.grads.items()}
    return replace(outcome, outputs=outputs, grads=grads)


def _together(*outcomes: oracle.Outcome) -> Iterator[tuple[Any, ...]]:
    """What two or three outcomes left behind, value by value."""
    yield from zip(*(outcome.outputs for outcome in outcomes), strict=True)
    for name in ("inputs", "state", "grads"):
        parts = [getattr(outcome, name) for outcome in outcomes]
        for key in parts[1]:
            yield tuple(part.get(key) for part in parts)


def _terms(inputs: tuple[Any, ...]) -> int:
    return max((x.numel() for x in inputs if isinstance(x, torch.Tensor)), default=1)


def _floats(*values: Any) -> bool:
    shapes = {tuple(x.shape) for x in values if isinstance(x, torch.Tensor) and x.is_floating_point()}
    return len(shapes) == 1 and all(isinstance(x, torch.Tensor) and x.is_floating_point() for x in values)


def _equal(got: Any, want: Any) -> bool:
    if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor):
        return bool(torch.allclose(got, want, rtol=0, atol=0, equal_nan=True)) if got.shape == want.shape else False
    return bool(got is want or got == want)


def _same_ends(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Infinities and NaN in the same places, and of the same kind."""
    odd = ~(torch.isfinite(got) & torch.isfinite(want))
    return _equal(torch.where(odd, got, 0), torch.where(odd, want, 0))


def _by_order(got: Any, want: Any, exact: Any, terms: int, scattered: bool = False) -> bool:
    """Any order of summing so many terms is right to their number times the precision of the sum, which is at least float32's,
    but where terms are added to memory one by one."""
    if (
        not _floats(got, want, exact)
        or not _same_ends(got, want)
        or not torch.equal(torch.isfinite(got), torch.isfinite(exact))
    ):
        return _equal(got, want)
    g, w, e = (torch.nan_to_num(x.detach().double(), 0, 0, 0) for x in (got, want, exact))
    precision = 2.0**-53 if got.dtype is torch.float64 else 2.0**-24
    rounding = torch.finfo(got.dtype).eps if got.dtype not in (torch.float32, torch.float64) else 0.0
    precision = max(precision, rounding / 2) if scattered else precision
    allowed = (terms * precision + rounding) * e.abs() + 4 * (w - e).abs() + 1e-12
    return bool(((g - e).abs() <= allowed).all())


def _by_rounding(outcome: oracle.Outcome, want: oracle.Outcome, inputs: tuple[Any, ...], eager: Eager) -> bool:
    """Does eager's own answer move as far when large inputs change in their last bits? A softmax of huge numbers is a choice among
    them, and which is the largest is then a matter of rounding."""
    if not any(isinstance(x, torch.Tensor) and x.is_floating_point() and bool((x.abs() > LARGE).any()) for x in inputs):
        return False
    trials = [eager(_nudged(inputs, seed)) for seed in range(4)]
    if any(trial.error is not None for trial in trials):
        return False
    return all(_as_far(values) for values in _together(outcome, want, *trials))


def _as_far(values: tuple[Any, ...]) -> bool:
    got, want, *trials = values
    if _equal(got, want):
        return True
    if not _floats(got, want, *trials):
        return False
    if not _same_ends(got, want):
        return any(not _same_ends(trial, want) for trial in trials)
    far = lambda x: float(torch.nan_to_num(x.detach().double() - want.detach().double(), 0, 0, 0).abs().max())
    return far(got) <= 1.5 * max(far(trial) for trial in trials)


def _nudged(inputs: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    """The same inputs, with large numbers changed in their last bits: storage by storage, since inputs may overlap and share."""
    generator = torch.Generator().manual_seed(seed)
    made, storages = oracle.clone_inputs(inputs), set()
    for value in made:
        if (
            not isinstance(value, torch.Tensor)
            or not value.is_floating_point()
            or value.untyped_storage().data_ptr() in storages
        ):
            continue
        storage = value.untyped_storage()
        storages.add(storage.data_ptr())
        count = storage.nbytes() // value.element_size()
        flat = torch.empty(0, dtype=value.dtype, device=value.device).set_(storage, 0, (count,), (1,))
        steps = torch.randint(-2, 3, (count,), generator=generator).to(value.device)
        flat.copy_(torch.where(flat.abs() > LARGE, flat * (1 + steps * torch.finfo(flat.dtype).eps), flat))
    return made
