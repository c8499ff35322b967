"""The forms in which a sample is called: other layouts, other values, in place, with `out=`, with gradients, at other sizes.

A form takes a call as the database gives it and returns another one, or None where the form means nothing for it. Whether eager takes
the new call is found out by calling it: a call that eager refuses is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance import layouts
from conformance.errors import unknown
from conformance.ops.call import Call, Hole, Key, holes, with_holes
from conformance.ops.operator import DTYPES, Operator, usable

Make = Callable[[Operator, Call], Call | None]

SPECIAL_FLOATS = (-0.0, 0.0, 1.0, -1.0, 0.5, -1.5, 2.0, float("nan"), float("inf"), float("-inf"))


# ----------------------------------------------------------------------------------------------- layouts


def in_layout(tensor: torch.Tensor, layout: str) -> torch.Tensor | None:
    """A tensor with the same elements in another layout; where elements share memory, those of the first index count. None where its
    rank has no such layout, or where it would be the same as before."""
    sizes = tuple(tensor.shape)
    if not layouts.possible(layout, tensor.dim()) or tensor.numel() < 2:
        return None
    strides, offset, length = layouts.place(layout, sizes)
    storage = torch.zeros(length, dtype=tensor.dtype)
    placed = storage.as_strided(sizes, strides, offset)
    if layout == "expanded":
        placed[:1].copy_(tensor[:1])
    elif layout == "expanded_last":
        placed[..., :1].copy_(tensor[..., :1])
    else:
        placed.copy_(tensor)
    moved = any(size > 1 and a != b for size, a, b in zip(sizes, strides, tensor.stride(), strict=True))
    return placed if moved or offset else None


def _placed(layout: str, first_only: bool) -> Make:
    def make(operator: Operator, call: Call) -> Call | None:
        if not operator.takes_layouts():
            return None
        count = 1 if first_only else len(call.tensors)
        made = [in_layout(tensor, layout) for tensor in call.tensors[:count]]
        if all(one is None for one in made):
            return None
        tensors = [new if new is not None else old for new, old in zip(made, call.tensors, strict=False)]
        return replace(call, tensors=(*tensors, *call.tensors[count:]))

    return make


# ------------------------------------------------------------------------------------------- other inputs


def _scalar(operator: Operator, call: Call) -> Call | None:
    """Every tensor with its first element alone, without dims."""
    if not operator.elementwise() or not all(tensor.numel() and tensor.dim() for tensor in call.tensors):
        return None
    return replace(call, tensors=tuple(tensor.flatten()[0].clone() for tensor in call.tensors))


def _empty(operator: Operator, call: Call) -> Call | None:
    """The first dim of the first tensor, and every dim of that size in the others, without elements."""
    if not call.tensors or not call.tensors[0].dim() or not call.tensors[0].numel():
        return None
    if operator.name.startswith("_unsafe_"):  # they check no index, and an index into nothing reads whatever is there
        return None
    size = call.tensors[0].shape[0]

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        return tensor[:0].clone() if tensor.dim() and tensor.shape[0] == size else tensor

    return replace(call, tensors=tuple(map(cut, call.tensors)))


def _twice(operator: Operator, call: Call) -> Call | None:
    """The same tensor for the first two arguments."""
    if len(call.tensors) < 2:
        return None
    first, second = call.tensors[:2]
    if (first.shape, first.dtype) != (second.shape, second.dtype):
        return None

    def point(value: Any) -> Any:
        return Hole(max(value.index - 1, 0)) if isinstance(value, Hole) else value

    args, kwargs = _mapped(point, call)
    return replace(call, args=args, kwargs=kwargs, tensors=(first, *call.tensors[2:]))


OTHER_DTYPE = {
    torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64, torch.float64: torch.float16,
    torch.int8: torch.float16, torch.uint8: torch.int8, torch.int16: torch.uint8, torch.int32: torch.int64,
    torch.int64: torch.float32, torch.bool: torch.float16, torch.complex64: torch.float64,
}  # fmt: skip


def _mixed(operator: Operator, call: Call) -> Call | None:
    """The second tensor in another dtype."""
    other = OTHER_DTYPE.get(DTYPES[call.key.dtype])
    if len(call.tensors) < 2 or other is None or any(one.dtype != DTYPES[call.key.dtype] for one in call.tensors[:2]):
        return None
    return replace(call, tensors=(call.tensors[0], call.tensors[1].to(other), *call.tensors[2:]))


def _mixed_scalar(operator: Operator, call: Call) -> Call | None:
    """The second tensor without dims and in another dtype: it does not widen the first one's within a category."""
    mixed = _mixed(operator, call) if operator.elementwise() else None
    if mixed is None or not mixed.tensors[1].numel() or not mixed.tensors[0].dim():
        return None
    return replace(mixed, tensors=(mixed.tensors[0], mixed.tensors[1].flatten()[0].clone(), *mixed.tensors[2:]))


def _special(operator: Operator, call: Call) -> Call | None:
    """NaN, infinities, signed zeros, denormals and extreme integers, in every pair of arguments."""
    if not (operator.elementwise() or operator.reduces()) or not call.tensors:
        return None
    dtype = call.tensors[0].dtype
    values = special_values(dtype)
    if values is None or any(tensor.dtype != dtype for tensor in call.tensors):
        return None
    count = len(values)
    grids = {
        1: (values.repeat(2),),
        2: (values.repeat_interleave(count), values.repeat(count)),
    }.get(len(call.tensors))
    if grids is None or (operator.reduces() and not call.tensors[0].dim()):
        return None
    if operator.reduces():
        shaped = _refilled(call.tensors[0], values)
        return replace(call, tensors=(shaped,)) if len(call.tensors) == 1 else None
    return replace(call, tensors=tuple(grid.clone() for grid in grids))


def _refilled(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A tensor of the same sizes with every value in turn."""
    count = tensor.numel()
    return values.repeat(count // len(values) + 1)[:count].reshape(tensor.shape).clone()


def special_values(dtype: torch.dtype) -> torch.Tensor | None:
    """The values at which an operator's own rules begin; None for a dtype that has none."""
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        extremes = (info.max, info.min, info.tiny, info.smallest_normal / 4, info.eps)
        return torch.tensor([*SPECIAL_FLOATS, *extremes, 3.7, -7.25, 100.0], dtype=torch.float64).to(dtype)
    if dtype is torch.bool or dtype.is_complex:
        return None
    bounds = torch.iinfo(dtype)
    small = (0, 1, 2, 3, 7, 100) if bounds.min == 0 else (0, 1, -1, 2, -2, 7, -7, 100)
    return torch.tensor([*small, bounds.max, bounds.max - 1, bounds.min, bounds.min + 1], dtype=dtype)


def _resized(operator: Operator, call: Call) -> Call | None:
    """A second call in which every size above one is larger by two."""
    if not any(size > 1 for tensor in call.tensors for size in tensor.shape):
        return None
    return replace(call, again=tuple(map(_larger, call.tensors)))


def _larger(tensor: torch.Tensor) -> torch.Tensor:
    """The elements repeated, so that indices stay valid."""
    for dim, size in enumerate(tensor.shape):
        if size > 1:
            tensor = tensor.index_select(dim, torch.arange(size + 2) % size)
    return tensor.clone()


# ----------------------------------------------------------------------------------------- other calls


def _in_place(operator: Operator, call: Call) -> Call | None:
    return None if operator.in_place is None or not call.tensors else replace(call, function=operator.in_place)


def _in_place_on_view(operator: Operator, call: Call) -> Call | None:
    """In place on the middle of something larger: what lies around it must stay."""
    if operator.in_place is None or not call.args or call.args[0] != Hole(0) or not call.tensors[0].dim():
        return None
    first = call.tensors[0]
    base = torch.zeros((first.shape[0] + 2, *first.shape[1:]), dtype=first.dtype)
    base[1:-1].copy_(first)
    if any(hole.index == 0 for hole in holes((call.args[1:], call.kwargs))):
        return None
    return replace(
        call,
        function=operator.in_place,
        args=(Hole(0, "[1:-1]"), *call.args[1:]),
        tensors=(base, *call.tensors[1:]),
    )


def _out(operator: Operator, call: Call) -> Call | None:
    """With `out=`: a tensor of the right size and strides, which holds something else."""
    if not operator.takes_out() or "out" in call.kwargs:
        return None
    try:
        result = call.module(*(tensor.clone() for tensor in call.tensors))
    except Exception:
        return None
    if not isinstance(result, torch.Tensor):
        return None
    index = len(call.tensors)
    out = torch.zeros_like(result)
    return replace(call, kwargs={**call.kwargs, "out": Hole(index)}, tensors=(*call.tensors, out))


def _grad(operator: Operator, call: Call) -> Call | None:
    """With the gradients of every floating-point tensor."""
    if not operator.differentiable(call.key.dtype) or DTYPES[call.key.dtype].is_complex:
        return None
    tensors = tuple(
        tensor.detach().clone().requires_grad_(tensor.is_floating_point()) if tensor.is_floating_point() else tensor
        for tensor in call.tensors
    )
    return replace(call, tensors=tensors, grad=True) if any(one.requires_grad for one in tensors) else None


def _mapped(change: Callable[[Any], Any], call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from conformance.torch_seam import pytree

    is_hole = lambda value: isinstance(value, Hole)
    return pytree.tree_map(change, (call.args, call.kwargs), is_leaf=is_hole)


FORMS: dict[str, Make] = {
    "plain": lambda operator, call: call,
    "transposed": _placed("transposed", first_only=True),
    "expanded": _placed("expanded", first_only=True),
    "sliced": _placed("sliced", first_only=False),
    "channels_last": _placed("channels_last", first_only=False),
    "empty": _empty,
    "scalar": _scalar,
    "twice": _twice,
    "mixed": _mixed,
    "mixed_scalar": _mixed_scalar,
    "special": _special,
    "in_place": _in_place,
    "in_place_on_view": _in_place_on_view,
    "out": _out,
    "grad": _grad,
    "resized": _resized,
}
ERRORS = "errors"  # the calls of the database that eager refuses
LAYOUT_FORMS = ("plain", "transposed", "expanded", "sliced")
ALL_FORMS = (*FORMS, ERRORS)
# Forms that say the same of every sample: one of each is enough.
ONCE = ("scalar", "mixed", "mixed_scalar", "special", "empty", "twice", "in_place_on_view", "out", "resized")


def form_names(wanted: Sequence[str]) -> tuple[str, ...]:
    """The forms asked for. `layouts` and `all` stand for several."""
    groups = {"layouts": LAYOUT_FORMS, "all": ALL_FORMS}
    found: dict[str, None] = {}
    for name in wanted:
        if name not in groups and name not in ALL_FORMS:
            raise unknown("form", name, [*groups, *ALL_FORMS])
        found |= dict.fromkeys(groups.get(name, (name,)))
    return tuple(name for name in ALL_FORMS if name in found)


# --------------------------------------------------------------------------------------------- the calls


def calls_of(operator: Operator, dtype: str, forms: Sequence[str], count: int) -> Iterator[Call]:
    """The calls of an operator in a dtype: up to `count` samples in every form that they can take."""
    plain = [_call(operator, dtype, index, sample) for index, sample in _chosen(operator, dtype, count)]
    for form in forms:
        if form == ERRORS:
            continue
        made = 0
        for call in plain:
            if form in ONCE and made:
                break
            if (one := _made(FORMS[form], operator, call)) is not None:
                made += 1
                yield replace(one, key=Key(dtype, form, call.key.sample))


def error_calls(operator: Operator) -> Iterator[Call]:
    """The calls that eager refuses. Their dtypes are the database's choice; they stand under the dtype of their first tensor."""
    for index, sample in enumerate(operator.error_samples()):
        if not usable(sample):
            continue
        (args, kwargs), tensors = with_holes(((sample.input, *sample.args), sample.kwargs))
        name = str(tensors[0].dtype)[6:] if tensors else "float32"
        yield Call(Key(name, ERRORS, index), operator.function, args, kwargs, tuple(tensors), raises=True)


def _made(make: Make, operator: Operator, call: Call) -> Call | None:
    try:
        return make(operator, call)
    except (RuntimeError, TypeError, NotImplementedError, ValueError):  # torch cannot build such a tensor
        return None


def _chosen(operator: Operator, dtype: str, count: int) -> list[tuple[int, Any]]:
    """Samples that differ from each other: the first, and others spread over the rest, no two of which look alike."""
    samples = [(index, sample) for index, sample in enumerate(operator.samples(dtype)) if usable(sample)]
    different: dict[str, tuple[int, Any]] = {}
    for index, sample in samples:
        different.setdefault(_looks(sample), (index, sample))
    found = list(different.values())
    # Samples whose dims are all longer than one first: others have fewer layouts, and being empty or without dims is a form of its own.
    found.sort(key=lambda pair: not _sized(pair[1]))
    if len(found) <= count:
        return found
    return [found[round(at * (len(found) - 1) / max(count - 1, 1))] for at in range(count)]


def _sized(sample: Any) -> bool:
    return not isinstance(sample.input, torch.Tensor) or (sample.input.dim() > 1 and min(sample.input.shape) > 1)


def _looks(sample: Any) -> str:
    (args, kwargs), tensors = with_holes(((sample.input, *sample.args), sample.kwargs))
    return repr((args, kwargs, [(tuple(t.shape), t.dtype) for t in tensors]))


def _call(operator: Operator, dtype: str, index: int, sample: Any) -> Call:
    (args, kwargs), tensors = with_holes(((sample.input, *sample.args), sample.kwargs))
    plain = tuple(tensor.detach().resolve_conj().resolve_neg() for tensor in tensors)
    return Call(Key(dtype, "plain", index), operator.function, args, kwargs, plain)
