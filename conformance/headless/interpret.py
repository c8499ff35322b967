"""Triton kernels on the CPU, by Triton's own interpreter, in a process that also compiles.

Triton decides at import (`TRITON_INTERPRET=1`) whether `@triton.jit` makes something to compile or something to
interpret. Here both are needed, so that functions made to be compiled are handed to the interpreter while
`interpreting()` is open. What the interpreter lacks is added: `libdevice`, exact rounding to narrow floats, reductions
and scans that are not done element by element.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import random
import types
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

from conformance.headless.errors import KernelFault, NotInterpretable
from conformance.headless.libdevice import FUNCTIONS
from conformance.headless.seam import triton

# Helpers of Inductor that wait for other programs of the same grid: one after another, they would wait for ever.
WAITING = ("x_grid_barrier",)
# The orders in which the programs of a grid can be run, one after another.
IN_ORDER, REVERSED, SHUFFLED = "in order", "reversed", "shuffled"


@contextlib.contextmanager
def interpreting() -> Iterator[None]:
    """Inside, `launch` works: Triton's language does what it says on numpy arrays."""
    _ = triton.code_generator  # keeps references to the language: to its own, so import it before
    additions = {
        "call_jitted": _call,
        "convert_float": _converter(triton.convert_float),
        "float_remainder": _remainder(triton.float_remainder),
        "generic_reduce": _reduce,
        "generic_scan": _scan,
        "inline_asm": _no_assembly,
        "extern_elementwise": _no_function,
        "device_assert": _assert,
        "masked_load": _checked(triton.masked_load, "reads", pointers=0, mask=1),
        "masked_store": _checked(triton.masked_store, "writes", pointers=0, mask=2),
        "atomic_rmw": _checked(triton.atomic_rmw, "writes", pointers=1, mask=3),
        "atomic_cas": _checked(triton.atomic_cas, "writes", pointers=0, mask=None),
    }
    functions = {f"libdevice.{name}": _libdevice(name) for name in FUNCTIONS if triton.has(f"libdevice.{name}")}
    with contextlib.ExitStack() as stack:
        stack.callback(triton.patch_language(_speaks(triton.language)).restore)
        stack.enter_context(_whole_numbers(triton.language.core.tensor))
        stack.enter_context(_without_stand_in(triton.libdevice))
        stack.enter_context(triton.replace(**additions, **functions))
        stack.enter_context(np.errstate(all="ignore"))
        yield


@contextlib.contextmanager
def _without_stand_in(library: Any) -> Iterator[None]:
    """A function of libdevice that is not among ours says so. Triton declares each as a stub that returns None, and a kernel would fail
    somewhere behind it, as if it were wrong."""
    before = {
        name: value
        for name, value in vars(library).items()
        if inspect.isfunction(value) and value.__module__ == library.__name__ and name not in FUNCTIONS
    }
    for name in before:
        setattr(library, name, _libdevice(name))
    try:
        yield
    finally:
        vars(library).update(before)


@contextlib.contextmanager
def _whole_numbers(tensor: Any) -> Iterator[None]:
    """A value of the kernel's as a bound of a loop. Triton's own `__index__` converts an array of one element, which
    numpy refuses from 2.4 on."""
    before = tensor.__index__
    tensor.__index__ = lambda self: int(self.handle.data.item())
    try:
        yield
    finally:
        tensor.__index__ = before


def launch(
    kernel: Any,
    grid: tuple[int, ...],
    arguments: dict[str, Any],
    constants: dict[str, Any],
    order: str = IN_ORDER,
    asserts: bool = False,
) -> None:
    """One launch: the kernel's function once for each program of the grid.

    asserts   the kernel's own asserts are compiled in"""
    fn, builder = rewritten(kernel.fn), triton.builder
    values = {name: triton.convert_argument(value) for name, value in arguments.items()} | constants
    grid = (*grid, 1, 1)[:3]
    builder.set_grid_dim(*grid)
    with _accessible(arguments), _asserting(builder, asserts):
        for program in programs(grid, order):
            builder.set_grid_idx(*program)
            fn(**values)


@contextlib.contextmanager
def _asserting(builder: Any, asserts: bool) -> Iterator[None]:
    before = builder.options
    builder.options = dataclasses.replace(before, debug=asserts, sanitize_overflow=False)  # as Inductor asks for
    try:
        yield
    finally:
        builder.options = before


def _assert(self: Any, condition: Any, message: str) -> None:
    if not condition:
        raise KernelFault(f"device-side assert: {message}")


def programs(grid: tuple[int, ...], order: str) -> list[tuple[int, ...]]:
    """The programs of a grid, in an order in which they are run."""
    found = list(itertools.product(*(range(size) for size in grid)))
    if order == REVERSED:
        found.reverse()
    if order == SHUFFLED:
        random.Random(0).shuffle(found)
    return found


def _speaks(language: Any) -> Callable[..., Any]:
    """A function that sees the language, for the interpreter to find it."""
    return types.FunctionType((lambda: None).__code__, {"tl": language, "core": language.core})


@cache
def rewritten(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as the interpreter wants it (every assignment makes a tensor), with globals of its own: rewriting
    adds names, and the module it comes from is not ours."""

    class Rewriter(triton.function_rewriter):  # type: ignore[misc, name-defined]
        def _compile_and_exec(self, tree: Any) -> Any:
            code = compile(tree, filename=self.filename, mode="exec")
            scope = {**vars(triton.interpreter), **self.fn.__globals__}
            found = dict(self.kwargs)
            exec(code, scope, found)  # the kernel itself
            return found[self.fn.__name__]

    return Rewriter(fn).rewrite_ast()


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A jitted function called by another."""
    if self.fn.__name__ in WAITING:
        raise NotInterpretable(f"{self.fn.__name__} waits for other programs of the grid")
    return rewritten(self.fn)(*args, **kwargs)


# ---------------------------------------------------------------------------------------------- memory

# Of the kernel that runs: first byte, first byte after it, the argument's name.
_memory: list[tuple[int, int, str]] = []


@contextlib.contextmanager
def _accessible(arguments: dict[str, Any]) -> Iterator[None]:
    """Inside, a kernel can access the memory of its arguments, and no other."""
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            _memory.append((storage.data_ptr(), storage.data_ptr() + storage.nbytes(), name))
    try:
        yield
    finally:
        _memory.clear()


def _checked(proceed: Callable[..., Any], verb: str, pointers: int, mask: int | None) -> Callable[..., Any]:
    """An access of the interpreter's, which is a fault where it leaves the tensors. On a GPU it finds what lies beside them, and now and
    then nothing, which is an error there too."""

    def access(self: Any, *args: Any, **kwargs: Any) -> Any:
        at = args[pointers]
        places = at.data if mask is None else at.data[np.broadcast_to(args[mask].data.astype(bool), at.data.shape)]
        if places.size:
            _check(places, max(1, at.get_element_ty().primitive_bitwidth // 8), verb)
        return proceed(self, *args, **kwargs)

    return access


def _check(places: np.ndarray, width: int, verb: str) -> None:
    first, last = int(places.min()), int(places.max()) + width
    if any(start <= first and last <= end for start, end, _ in _memory):
        return
    inside = np.zeros(places.shape, bool)
    for start, end, _ in _memory:
        inside |= (places >= start) & (places + np.uint64(width) <= end)
    if not inside.all():
        place = int(places[~inside].min())
        start, end, name = min(_memory, key=lambda m: max(m[0] - place, place - m[1]))
        where = f"{start - place} bytes before" if place < start else f"{place - end} bytes after the end of"
        raise KernelFault(f"{verb} memory that it was not given: {where} {name}")


def _no_assembly(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotInterpretable("inline PTX assembly")


def _no_function(self: Any, library: str, path: str, symbol: str, *args: Any, **kwargs: Any) -> Any:
    raise _no_stand_in(symbol)


def _no_stand_in(function: str) -> NotInterpretable:
    return NotInterpretable(f"{function} of libdevice has no stand-in")


# ----------------------------------------------------------------------------------------- mathematics


@cache
def _libdevice(name: str) -> Callable[..., Any]:
    """A function of CUDA's mathematics library, computed by torch on the CPU in the same precision; where we have none, it says so."""
    function = FUNCTIONS.get(name)

    def call(*args: Any, **_: Any) -> Any:
        if function is None:
            raise _no_stand_in(name)
        return _tensor(function(*(_values(arg) for arg in args)))

    return call


def _values(arg: Any) -> torch.Tensor:
    handle = getattr(arg, "handle", None)
    if handle is None:
        return torch.as_tensor(arg)
    data = handle.data
    if str(handle.dtype) == "bf16":
        return torch.from_numpy(np.ascontiguousarray(data).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(data))


def number(value: float, dtype: torch.dtype) -> Any:
    """A number as a kernel is given one. Triton's interpreter makes one of integers alone, and hands a float on as Python's."""
    return _tensor(torch.tensor(value, dtype=dtype))


def _tensor(result: torch.Tensor) -> Any:
    language = triton.language
    dtype = getattr(language, {torch.bool: "int1"}.get(result.dtype, str(result.dtype).removeprefix("torch.")))
    data = result.view(torch.int16).numpy().view(np.uint16) if result.dtype == torch.bfloat16 else result.numpy()
    shaped = data.ndim and data.shape != (1,)
    kind = language.block_type(dtype, list(data.shape)) if shaped else dtype
    return language.core.tensor(triton.tensor_handle(data if data.ndim else data.reshape(1), dtype), kind)


# ------------------------------------------------------------------------------------------- rounding

FLOATS = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "fp64": torch.float64,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
}


def _converter(original: Callable[..., Any]) -> Callable[..., Any]:
    """Round to nearest, ties to even, as the hardware does (the interpreter's own loses a carry)."""

    def convert(data: np.ndarray, source: Any, result: Any, rounding_mode: Any) -> np.ndarray:
        if str(source) not in FLOATS or str(result) not in FLOATS:
            return original(data, source, result, rounding_mode)
        before, after = FLOATS[str(source)], FLOATS[str(result)]
        bits = np.ascontiguousarray(data)
        raw = torch.frombuffer(bytearray(bits.tobytes()), dtype=before) if bits.size else torch.empty(0, dtype=before)
        wide = raw.to(torch.float32) if before.itemsize < 4 else raw
        rounded = wide.to(after)
        width = getattr(np, f"uint{after.itemsize * 8}")
        return rounded.view(torch.uint8).numpy().view(width).reshape(data.shape)

    return convert


def _remainder(original: Callable[..., Any]) -> Callable[..., Any]:
    """`x % y` as LLVM computes it for NVIDIA's GPUs: by a quotient that is rounded and may overflow. The interpreter's is exact."""

    def remainder(self: Any, left: Any, right: Any) -> Any:
        if str(left.dtype) not in ("fp32", "fp64"):
            return original(self, left, right)
        x, y = left.data, right.data
        data = np.where(np.isinf(y), x, x - np.trunc(x / y) * y).astype(x.dtype)
        return triton.tensor_handle(data, left.dtype.scalar)

    return remainder


# ------------------------------------------------------------------------------- reductions and scans


def _reduce(self: Any, input: Any) -> Any:
    """Neighbours in pairs along the axis, then the pairs in pairs: as many steps as a GPU takes."""
    flat = self.axis is None
    arrays = [a.handle.data.reshape(-1) if flat else np.moveaxis(a.handle.data, self.axis, 0) for a in input]
    kinds = [origin.dtype for origin in input]
    while (size := arrays[0].shape[0]) > 1:
        even = size - size % 2
        total = _combined(self, [array[0:even:2] for array in arrays], [array[1:even:2] for array in arrays], kinds)
        rest = [array[even:] for array in arrays]
        kinds = [tensor.dtype.scalar for tensor in total]
        arrays = [_joined(tensor.handle.data, more, even // 2) for tensor, more in zip(total, rest, strict=True)]
    found = []
    for array, origin in zip(arrays, input, strict=True):
        data = array[0]
        if self.keep_dims:
            data = np.reshape(data, (1,) * origin.handle.data.ndim) if flat else np.expand_dims(data, self.axis)
        found.append(self.to_tensor(data, origin.dtype))
    return found


def _scan(self: Any, input: Any) -> Any:
    """Each element with the one before it, then with the one two before it, four before it …"""
    arrays = [np.moveaxis(a.handle.data, self.axis, 0) for a in input]
    kinds = [origin.dtype for origin in input]
    size, step = arrays[0].shape[0], 1
    while step < size:
        # All of them, since a block has a power of two of elements; the first ones have nothing before them.
        total = _combined(self, [np.roll(array, step, 0) for array in arrays], arrays, kinds)
        arrays = [
            np.concatenate([array[:step], _joined(tensor.handle.data, array[:0], size)[step:].astype(array.dtype)])
            for tensor, array in zip(total, arrays, strict=True)
        ]
        step *= 2
    return [
        self.to_tensor(np.moveaxis(array, 0, self.axis), origin.dtype)
        for array, origin in zip(arrays, input, strict=True)
    ]


def _combined(self: Any, total: list[np.ndarray], more: list[np.ndarray], kinds: list[Any]) -> list[Any]:
    """What the kernel's own function makes of two elements of each array, of all at once."""
    given = [self.to_tensor(array, kind) for arrays in (total, more) for array, kind in zip(arrays, kinds, strict=True)]
    result = rewritten(self.combine_fn.fn)(*given)
    result = result if isinstance(result, (tuple, list)) or type(result).__name__ == "tuple" else (result,)
    return [
        value if isinstance(value, triton.language.core.tensor) else triton.semantic.to_tensor(value)
        for value in result
    ]


def _joined(data: np.ndarray, more: np.ndarray, size: int) -> np.ndarray:
    """What was combined, `size` long (a function that ignores its arguments gives one number for all), and what is left over."""
    shape = (size, *more.shape[1:])
    whole = np.reshape(data, shape) if data.size == np.prod(shape, dtype=int) else np.broadcast_to(data, shape)
    return np.concatenate([whole, more.astype(whole.dtype)]) if more.shape[0] else whole
