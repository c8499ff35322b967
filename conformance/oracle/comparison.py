"""Where an outcome is not what eager gave.

Differences are looked for in layers: the number and structure of outputs, dtype, shape, stride, aliasing, mutation, and only then
values. A value is wrong only if it is further from the fp64 reference than eager's own value is, beyond a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from conformance.errors import first_line
from conformance.oracle.outcome import Outcome
from conformance.oracle.reference import Reference
from conformance.verdict import Kind

# Element-wise: |error| ≤ atol + rtol·|reference| is never a finding (torch.testing's own defaults).
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
# How much further from fp64 than eager a result may be: at the worst element, and in the mean square.
WORST, MEAN = 4.0, 2.0
# Of few numbers the mean square says little: one long sum is added up in another order, and eager's may be near by chance.
FEW, MEAN_OF_FEW = 64, 8.0
# Wrong by less than this, relative to the values: not as exact as eager (TF32 for fp32, say), but no other computation.
DRIFT = 3e-3


@dataclass(frozen=True)
class Difference:
    """One way in which an outcome is not what eager gave. `where` is `output 0`, `input 1`, `buffer running_mean` …"""

    kind: Kind
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.where}: {self.detail}"

    @property
    def of_strides(self) -> bool:
        return self.kind is Kind.WRONG_METADATA and self.detail.startswith("stride ")


def compare_form(outcome: Outcome, ref: Reference, program: list[Difference]) -> list[Difference]:
    """Where an earlier form of the program is not what eager gave. Its strides are its own affair, unless the program itself has them: then
    they were lost in this form already, and code generation only kept them."""
    if found := compare(outcome, ref, strides=False):
        return found
    lost = [difference for difference in program if difference.of_strides]
    return [difference for difference in compare(outcome, ref) if difference in lost] if lost else []


def compare(outcome: Outcome, ref: Reference, *, strides: bool = True, aliases: bool = True) -> list[Difference]:
    """Where an outcome is not what eager gave; empty when it is the same."""
    eager = ref.eager
    if eager.error is not None and outcome.error is None:
        said = first_line(eager.error)
        return [Difference(Kind.LOST_VALIDATION, "call", f"eager raises {said}; the compiled program does not raise")]
    if eager.error is not None:
        return []
    if outcome.error is not None:
        return [Difference(Kind.CRASH, "call", first_line(outcome.error))]
    if outcome.spec != eager.spec:
        return [
            Difference(
                Kind.WRONG_METADATA, "outputs", f"structure {_shown(outcome.spec)}, eager returns {_shown(eager.spec)}"
            )
        ]
    found = list(_metadata(outcome, eager, strides))
    if aliases:
        found += _aliasing(outcome, eager)
    found += _mutation(outcome, ref)
    found += _python(outcome, eager)
    if outcome.drawn != eager.drawn:
        detail = (
            "no random numbers were drawn, eager draws some"
            if eager.drawn
            else "random numbers were drawn, eager draws none"
        )
        found.append(Difference(Kind.WRONG_RESULT, "generator", detail))
    if not found:
        exact = ref.exact.outputs if ref.exact else [None] * len(eager.outputs)
        for index, triple in enumerate(zip(outcome.outputs, eager.outputs, exact, strict=True)):
            found += value_differences(f"output {index}", *triple)
        found += _gradients(outcome, ref)
    return found


def _shown(spec: Any) -> str:
    text = " ".join(str(spec).replace("TreeSpec", "").split())
    return text if len(text) < 120 else text[:119] + "…"


def _metadata(outcome: Outcome, eager: Outcome, strides: bool) -> Iterator[Difference]:
    for index, (got, want) in enumerate(zip(outcome.outputs, eager.outputs, strict=True)):
        where = f"output {index}"
        if type(got) is not type(want) and not (isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)):
            yield Difference(
                Kind.WRONG_METADATA, where, f"a {type(got).__name__}, eager returns a {type(want).__name__}"
            )
        elif isinstance(got, torch.Tensor):
            for name in ("dtype", "shape", "device", "layout"):
                if getattr(got, name) != getattr(want, name):
                    yield Difference(
                        Kind.WRONG_METADATA,
                        where,
                        f"{name} {_plain(getattr(got, name))}, eager has {_plain(getattr(want, name))}",
                    )
            if (
                got.shape == want.shape
                and strides
                and not same_strides(got.shape, outcome.strides[index], eager.strides[index])
            ):
                yield Difference(
                    Kind.WRONG_METADATA, where, f"stride {outcome.strides[index]}, eager has {eager.strides[index]}"
                )
            if outcome.requires_grad[index] != eager.requires_grad[index]:
                yield Difference(
                    Kind.WRONG_METADATA,
                    where,
                    f"requires_grad {outcome.requires_grad[index]}, eager has {eager.requires_grad[index]}",
                )


def _plain(value: Any) -> str:
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value).replace("torch.", "")


def same_strides(shape: torch.Size, got: Any, want: Any) -> bool:
    """Strides of dims of size 0 or 1 say nothing."""
    if 0 in shape:
        return True
    return all(a == b for size, a, b in zip(shape, got, want, strict=True) if size > 1)


def _aliasing(outcome: Outcome, eager: Outcome) -> Iterator[Difference]:
    for index, (got, want) in enumerate(zip(outcome.shares, eager.shares, strict=True)):
        if got != want:
            detail = f"shares storage with {got or 'nothing'}; in eager with {want or 'nothing'}"
            yield Difference(Kind.LOST_ALIAS, f"output {index}", detail)


def _mutation(outcome: Outcome, ref: Reference) -> Iterator[Difference]:
    exact_inputs = ref.exact.inputs if ref.exact else {}
    exact_state = ref.exact.state if ref.exact else {}
    for got, want, exact in (
        (outcome.inputs, ref.eager.inputs, exact_inputs),
        (outcome.state, ref.eager.state, exact_state),
    ):
        for name in want:
            if name not in got:
                yield Difference(Kind.LOST_MUTATION, name, "is gone after the call")
            elif got[name].shape != want[name].shape or got[name].dtype != want[name].dtype:
                yield Difference(Kind.LOST_MUTATION, name, "has another shape or dtype after the call than in eager")
            else:
                for difference in value_differences(name, got[name], want[name], exact.get(name)):
                    yield Difference(
                        Kind.LOST_MUTATION, name, f"after the call it is not what eager left: {difference.detail}"
                    )


def _python(outcome: Outcome, eager: Outcome) -> Iterator[Difference]:
    """Python values after the call: an object that was changed in another way, a list that is longer, an attribute that is not there."""
    with_module = all(any(path.startswith("attributes") for path in each.python) for each in (outcome, eager))
    for path in dict.fromkeys([*eager.python, *outcome.python]):
        if path.startswith("attributes") and not with_module:
            continue  # one of the two was given a function, which has no attributes to look at
        if path not in outcome.python:
            yield Difference(
                Kind.LOST_MUTATION, path, f"is not there after the call; in eager it is {_short(eager.python[path])}"
            )
        elif path not in eager.python:
            yield Difference(
                Kind.LOST_MUTATION, path, f"is {_short(outcome.python[path])} after the call; in eager it is not there"
            )
        else:
            for difference in value_differences(path, outcome.python[path], eager.python[path]):
                yield Difference(
                    Kind.LOST_MUTATION, path, f"after the call it is not what eager left: {difference.detail}"
                )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:79] + "…"


def _gradients(outcome: Outcome, ref: Reference) -> Iterator[Difference]:
    for name, want in ref.eager.grads.items():
        got = outcome.grads.get(name)
        if (got is None) != (want is None):
            yield Difference(
                Kind.WRONG_RESULT, f"gradient of {name}", "missing" if got is None else "present, eager has none"
            )
        elif got is not None and want is not None:
            exact = ref.exact.grads.get(name) if ref.exact else None
            yield from value_differences(f"gradient of {name}", got, want, exact)


def value_differences(where: str, got: Any, want: Any, exact: Any = None) -> Iterator[Difference]:
    """Is `got` further from the exact value than `want`, eager's own, is?"""
    if isinstance(got, dict) and isinstance(want, dict):  # snapshots of Python values
        for path in dict.fromkeys([*want, *got]):
            nothing = "(not there)"
            yield from value_differences(f"{where}{path}", got.get(path, nothing), want.get(path, nothing))
        return
    if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor):
        if type(got) is not type(want) or not _same_plain(got, want):
            yield Difference(Kind.WRONG_RESULT, where, f"{_short(got)}, eager gives {_short(want)}")
        return
    if got.shape != want.shape or got.dtype != want.dtype:
        detail = f"{_plain(got.dtype)} {tuple(got.shape)}, eager has {_plain(want.dtype)} {tuple(want.shape)}"
        yield Difference(Kind.WRONG_METADATA, where, detail)
        return
    same_kind = got.dtype == want.dtype and got.device == want.device
    if got.numel() == 0 or (
        same_kind and torch.equal(got, want)
    ):  # as eager to the last bit: no further from anything than eager is
        return
    if not (want.is_floating_point() or want.is_complex()):
        wrong = int((got != want).sum())
        if wrong:
            yield Difference(Kind.WRONG_RESULT, where, f"{wrong} of {want.numel()} elements differ")
        return
    yield from _float_differences(where, got, want, exact)


def _same_plain(got: Any, want: Any) -> bool:
    if isinstance(got, float):
        return math.isclose(got, want, rel_tol=1e-6) or (got != got and want != want)
    return bool(got == want)


def _float_differences(
    where: str, got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor | None
) -> Iterator[Difference]:
    wide = torch.complex128 if want.is_complex() else torch.float64
    if exact is None or exact.shape != want.shape or not (exact.is_floating_point() or exact.is_complex()):
        exact = want
    g, w, e = (t.detach().cpu().to(wide) for t in (got, want, exact))
    # Where eager overflowed on its way to a number that the dtype can hold, its answer is no measure: overflowing too is no worse,
    # and to come near the exact number is better.
    overflowed = ~torch.isfinite(w) & torch.isfinite(e) & (e.abs() <= torch.finfo(want.dtype).max)
    near = (g - e).abs() <= 0.05 * e.abs() + 1e-3
    excused = overflowed & (~torch.isfinite(g) | near)
    e = torch.where(torch.isfinite(w), e, w)
    finite = torch.isfinite(e) & torch.isfinite(w)
    odd = ~finite & ~((g == w) | (g.isnan() & w.isnan()) | excused)
    # Where eager's own number is far off (a square overflowed on its way, and was divided by), no other number is held against the compiler.
    meaningless = finite & ~torch.isfinite(g) & ((w - e).abs() > 0.25 * e.abs() + 1e-3)
    finite &= ~meaningless
    odd |= finite & ~torch.isfinite(g)
    if odd.any():
        yield Difference(
            Kind.WRONG_RESULT,
            where,
            f"{int(odd.sum())} of {want.numel()} elements are not the infinity, NaN or number that eager gives",
        )
        return
    error, eager_error = ((t - e).abs()[finite] for t in (g, w))
    scale = e.abs()[finite]
    if error.numel() == 0:
        return
    rtol, atol = TOLERANCES.get(want.dtype, (1.6e-2, 1e-5))
    allowed = torch.clamp(WORST * eager_error.max(), min=0.0) + atol + rtol * scale
    over = error > allowed
    rms, eager_rms = (float(t.square().mean().sqrt()) for t in (error, eager_error))
    scale_rms = float(scale.square().mean().sqrt())
    wide_enough = want.dtype in (torch.float32, torch.float64)  # in others, rounding the result is most of the error
    mean = MEAN_OF_FEW if wide_enough and error.numel() < FEW else MEAN
    floor = torch.finfo(want.dtype).eps * scale_rms + 1e-2 * atol
    if over.any() or rms > mean * max(eager_rms, floor * (2 if wide_enough else 0.5)):
        relative = rms / scale_rms if scale_rms else math.inf
        # A wrong program is wrong by far; a merely less exact one is drift.
        kind = Kind.NUMERIC_DRIFT if relative < max(DRIFT, torch.finfo(want.dtype).eps) else Kind.WRONG_RESULT
        yield Difference(
            kind,
            where,
            f"{int(over.sum())} of {want.numel()} elements out of tolerance; largest error {float(error.max()):.3g} "
            f"(eager's {float(eager_error.max()):.3g}), rms {rms:.3g} (eager's {eager_rms:.3g}), values of rms {scale_rms:.3g}",
        )


def survived(outcome: Outcome) -> list[Difference]:
    """Are the outputs of an earlier call still what they were?"""
    found = []
    for index, (now, then) in enumerate(zip(outcome.live, outcome.outputs, strict=True)):
        if isinstance(now, torch.Tensor) and not torch.equal(torch.nan_to_num(now.detach()), torch.nan_to_num(then)):
            found.append(Difference(Kind.STALE_OUTPUT, f"output {index}", "was overwritten by a later call"))
    return found


def signature(outcome: Outcome) -> dict[str, Any]:
    """What a record keeps of an outcome: comparable between machines, no values."""
    outputs = [
        f"{str(x.dtype)[6:]}{list(x.shape)}{list(outcome.strides[i] or ())}"
        if isinstance(x, torch.Tensor)
        else type(x).__name__
        for i, x in enumerate(outcome.outputs)
    ]
    return {"outputs": outputs, "shares": [f"output {i} shares with {s}" for i, s in enumerate(outcome.shares) if s]}


def mutated(outcome: Outcome, inputs: tuple[Any, ...]) -> list[int]:
    """Which inputs did the call write to?"""
    changed = []
    for index, value in enumerate(inputs):
        after = outcome.inputs.get(f"input {index}")
        if after is not None and not torch.equal(torch.nan_to_num(after), torch.nan_to_num(value.detach())):
            changed.append(index)
    return changed
