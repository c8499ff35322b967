"""Triton kernels on the CPU, by Triton's own interpreter, in a process that also compiles.

Triton decides at import (`TRITON_INTERPRET=1`) whether `@triton.jit` makes something to compile or something to interpret. Here
both are needed, so that functions made to be compiled are handed to the interpreter while `interpreting()` is open.
What the interpreter lacks is added: `libdevice`, exact rounding to narrow floats, reductions and scans that are not
done element by element.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

from conformance.headless.device import find, replaced
from conformance.headless.errors import Moved, NotInterpretable
from conformance.headless.libdevice import FUNCTIONS

# Helpers of Inductor that wait for other programs of the same grid: one after another, they would wait for ever.
WAITING = ("x_grid_barrier",)


@contextlib.contextmanager
def interpreting() -> Iterator[None]:
    """Inside, `launch` works: Triton's language does what it says on numpy arrays."""
    interpreter = find("triton.runtime.interpreter")
    language = find("triton.language")
    find("triton.compiler.code_generator")  # keeps references to the language: to its own, so import it before
    with contextlib.ExitStack() as stack:
        try:
            scope = interpreter._patch_lang(_speaks(language))
        except AttributeError as error:
            raise Moved(f"triton.runtime.interpreter ({error})") from None
        stack.callback(scope.restore)
        for owner, answers in _additions(interpreter).items():
            place = find(owner)
            for name, answer in answers.items():
                if name in vars(place):
                    stack.enter_context(replaced(place, owner, name, answer))
        stack.enter_context(np.errstate(all="ignore"))
        yield


def launch(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any], constants: dict[str, Any]) -> None:
    """One launch: the kernel's function once for each program of the grid."""
    interpreter = find("triton.runtime.interpreter")
    fn = rewritten(kernel.fn)
    values = {name: interpreter._implicit_cvt(value) for name, value in arguments.items()} | constants
    grid = (*grid, 1, 1)[:3]
    interpreter.interpreter_builder.set_grid_dim(*grid)
    for x in range(grid[0]):
        for y in range(grid[1]):
            for z in range(grid[2]):
                interpreter.interpreter_builder.set_grid_idx(x, y, z)
                fn(**values)


def _speaks(language: Any) -> Callable[..., Any]:
    """A function that sees the language, for the interpreter to find it."""
    return types.FunctionType((lambda: None).__code__, {"tl": language, "core": language.core})


@cache
def rewritten(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as the interpreter wants it (every assignment makes a tensor), with globals of its own: rewriting
    adds names, and the module it comes from is not ours."""
    interpreter = find("triton.runtime.interpreter")

    class Rewriter(interpreter.FunctionRewriter):  # type: ignore[misc, name-defined]
        def _compile_and_exec(self, tree: Any) -> Any:
            code = compile(tree, filename=self.filename, mode="exec")
            scope = {**vars(interpreter), **self.fn.__globals__}
            found = dict(self.kwargs)
            exec(code, scope, found)  # the kernel itself
            return found[self.fn.__name__]

    return Rewriter(fn).rewrite_ast()


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A jitted function called by another."""
    if self.fn.__name__ in WAITING:
        raise NotInterpretable(f"{self.fn.__name__} waits for other programs of the grid")
    return rewritten(self.fn)(*args, **kwargs)


def _additions(interpreter: Any) -> dict[str, dict[str, Any]]:
    return {
        "triton.runtime.jit.JITFunction": {"__call__": _call},
        "triton.language.extra.libdevice": {name: _libdevice(name) for name in _names("triton.language.extra.libdevice")},
        "triton.runtime.interpreter": {"_convert_float": _converter(interpreter._convert_float)},
        "triton.runtime.interpreter.ReduceOps": {"generic_reduce": _reduce},
        "triton.runtime.interpreter.ScanOps": {"generic_scan": _scan},
        "triton.runtime.interpreter.InterpreterBuilder": {"create_inline_asm": _no_asm},
    }


def _no_asm(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotInterpretable("inline PTX assembly")


@cache
def _names(module: str) -> tuple[str, ...]:
    return tuple(name for name, value in vars(find(module)).items() if callable(value))


# ----------------------------------------------------------------------------------------- mathematics


@cache
def _libdevice(name: str) -> Callable[..., Any]:
    """A function of CUDA's mathematics library, computed by torch on the CPU in the same precision."""
    function = FUNCTIONS.get(name)

    def call(*args: Any, **_: Any) -> Any:
        if function is None:
            raise NotInterpretable(f"libdevice.{name} has no stand-in")
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


def _tensor(result: torch.Tensor) -> Any:
    language = find("triton.language")
    interpreter = find("triton.runtime.interpreter")
    dtype = getattr(language, {torch.bool: "int1"}.get(result.dtype, str(result.dtype).removeprefix("torch.")))
    data = result.view(torch.int16).numpy().view(np.uint16) if result.dtype == torch.bfloat16 else result.numpy()
    shaped = data.ndim and data.shape != (1,)
    kind = language.block_type(dtype, list(data.shape)) if shaped else dtype
    return language.core.tensor(interpreter.TensorHandle(data if data.ndim else data.reshape(1), dtype), kind)


# ------------------------------------------------------------------------------------------- rounding

FLOATS = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "fp64": torch.float64,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
}
BITS = {torch.float8_e4m3fn: np.uint8, torch.float8_e5m2: np.uint8, torch.bfloat16: np.uint16}


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


# ------------------------------------------------------------------------------- reductions and scans


def _reduce(self: Any, input: Any) -> Any:
    """Left to right along the axis, all other elements at once."""
    flat = self.axis is None
    arrays = [a.handle.data.reshape(-1) if flat else a.handle.data for a in input]
    axis = 0 if flat else self.axis
    total = _slices(self, arrays, input, axis, 0)
    for index in range(1, arrays[0].shape[axis]):
        total = _combined(self, total, _slices(self, arrays, input, axis, index))
    found = []
    for tensor, origin in zip(total, input, strict=True):
        data = tensor.handle.data
        if flat:
            data = data.reshape((1,) * origin.handle.data.ndim) if self.keep_dims else data.reshape(-1)[0]
        else:
            shape = [size for i, size in enumerate(arrays[0].shape) if i != axis]
            data = np.broadcast_to(data.reshape(shape) if data.size == np.prod(shape, dtype=int) else data, shape)
            data = np.expand_dims(data, axis) if self.keep_dims else data
        found.append(self.to_tensor(data, origin.dtype))
    return found


def _scan(self: Any, input: Any) -> Any:
    arrays = [a.handle.data for a in input]
    steps = [_slices(self, arrays, input, self.axis, 0)]
    for index in range(1, arrays[0].shape[self.axis]):
        steps.append(_combined(self, steps[-1], _slices(self, arrays, input, self.axis, index)))
    shape = [size for i, size in enumerate(arrays[0].shape) if i != self.axis]
    return [
        self.to_tensor(np.stack([np.reshape(step[j].handle.data, shape) for step in steps], axis=self.axis), origin.dtype)
        for j, origin in enumerate(input)
    ]


def _slices(self: Any, arrays: list[np.ndarray], input: Any, axis: int, index: int) -> tuple[Any, ...]:
    return tuple(self.to_tensor(np.take(array, index, axis), origin.dtype) for array, origin in zip(arrays, input, strict=True))


def _combined(self: Any, total: tuple[Any, ...], more: tuple[Any, ...]) -> tuple[Any, ...]:
    result = rewritten(self.combine_fn.fn)(*total, *more)
    result = result if isinstance(result, (tuple, list)) or type(result).__name__ == "tuple" else (result,)
    semantic = find("triton.runtime.interpreter").interpreter_semantic
    return tuple(semantic.to_tensor(value) if not hasattr(value, "handle") else value for value in result)
