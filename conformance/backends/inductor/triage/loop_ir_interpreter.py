"""Runs Inductor's loop IR on tensors: what lowering made, before anything was fused or turned into code.

Where the IR computes what the graph computes and the program does not, code generation (or fusion) is at fault; where the
IR itself is off, lowering is. Nothing is compiled for this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import sympy
import torch

from conformance.backends.inductor.seam import seam

NARROW = (torch.float16, torch.bfloat16)


class CannotInterpret(Exception):
    """An op or index that this interpreter does not know."""


def index_of(expr: Any, env: dict[Any, Any]) -> Any:
    """An index expression, over index tensors in place of symbols."""
    if isinstance(expr, (int, sympy.Integer)):
        return int(expr)
    if isinstance(expr, sympy.Symbol):
        if expr not in env:
            raise CannotInterpret(f"the symbol {expr}")
        return env[expr]
    parts = [index_of(a, env) for a in expr.args]
    kind = type(expr).__name__
    if kind in ("Add", "Mul"):
        total = parts[0]
        for part in parts[1:]:
            total = total + part if kind == "Add" else total * part
        return total
    if kind == "Pow" and isinstance(parts[1], int):
        return parts[0] ** parts[1]
    if kind in ("FloorDiv", "CleanDiv"):
        return _floor(parts[0], parts[1])
    if kind == "ModularIndexing":
        return _floor(parts[0], parts[1]) % parts[2]
    if kind in ("Mod", "PythonMod"):
        return parts[0] % parts[1]
    if kind in ("Identity",):
        return parts[0]
    if kind in ("Max", "Min"):
        pick = torch.maximum if kind == "Max" else torch.minimum
        total = torch.as_tensor(parts[0])
        for part in parts[1:]:
            total = pick(total, torch.as_tensor(part))
        return total
    raise CannotInterpret(f"the index {kind}")


def _floor(a: Any, b: Any) -> Any:
    return a // b if not isinstance(a, torch.Tensor) else torch.div(a, b, rounding_mode="floor")


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value.float() if value.dtype in NARROW else value


SAME = {  # ops of the IR that torch names otherwise
    "truediv": torch.true_divide,
    "int_truediv": torch.true_divide,
    "div_rn": torch.true_divide,
    "mul_rn": torch.mul,
    "and_": torch.bitwise_and,
    "or_": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "lshift": torch.bitwise_left_shift,
    "rshift": torch.bitwise_right_shift,
    "mod": torch.fmod,
    "identity": lambda x: x,
    "fma": lambda x, y, z: x * y + z,
    "floordiv": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "fmaximum": torch.fmax,
    "i0": torch.special.i0,
    "ndtr": torch.special.ndtr,
    "log_ndtr": torch.special.log_ndtr,
    "erfcx": torch.special.erfcx,
}
REDUCTIONS: dict[str, Callable[[torch.Tensor, list[int]], Any]] = {
    "sum": lambda x, d: x.sum(d, keepdim=True),
    "prod": lambda x, d: _each(torch.prod, x, d),
    "max": lambda x, d: x.amax(d, keepdim=True),
    "min": lambda x, d: x.amin(d, keepdim=True),
    "any": lambda x, d: _each(torch.any, x, d),
    "argmax": lambda x, d: _flat(x, d).argmax(-1).reshape(_kept(x, d)),
    "argmin": lambda x, d: _flat(x, d).argmin(-1).reshape(_kept(x, d)),
    "welford_reduce": lambda x, d: _welford(x, d),
}


def _each(function: Callable[..., torch.Tensor], x: torch.Tensor, dims: list[int]) -> torch.Tensor:
    for dim in dims:
        x = function(x, dim=dim, keepdim=True)
    return x


def _flat(x: torch.Tensor, dims: list[int]) -> torch.Tensor:
    return x.flatten(dims[0])


def _kept(x: torch.Tensor, dims: list[int]) -> list[int]:
    return [1 if d in dims else s for d, s in enumerate(x.shape)]


def _welford(x: torch.Tensor, dims: list[int]) -> tuple[torch.Tensor, ...]:
    mean = x.mean(dims, keepdim=True)
    count = math.prod(x.shape[d] for d in dims)
    return mean, (x - mean).square().sum(dims, keepdim=True), torch.full_like(mean, count)


def make_interpreter(
    memory: dict[str, torch.Tensor], aliases: dict[str, str], env: dict[Any, Any], grid: list[int], outer: int
) -> Any:
    """A handler for Inductor's `ops`: loads from and stores to `memory`, over all points of a grid at once."""
    whole = list(range(outer, len(grid)))

    class Interpreter(seam.ops_handler):  # type: ignore[misc,name-defined]
        def _default(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            function = SAME.get(name) or getattr(torch, name, None) or getattr(torch.special, name, None)
            if function is None:
                raise CannotInterpret(f"the op {name}")
            return function(*[torch.as_tensor(a) if isinstance(a, (int, float, bool)) else a for a in args], **kwargs)

        def load(self, name: str, index: Any) -> torch.Tensor:
            flat = memory[aliases.get(name, name)]
            at = torch.as_tensor(index_of(sympy.sympify(index), env))
            return _wide(flat[at.clamp(0, flat.numel() - 1)])

        def store(self, name: str, index: Any, value: Any, mode: Any = None) -> None:
            flat = memory[aliases.get(name, name)]
            at = torch.as_tensor(index_of(sympy.sympify(index), env))
            shape = torch.broadcast_shapes(at.shape, value.shape, tuple(grid))
            where, what = at.expand(shape).reshape(-1), value.expand(shape).reshape(-1).to(flat.dtype)
            flat.index_put_((where,), what, accumulate=mode == "atomic_add")

        def store_reduction(self, name: str, index: Any, value: Any) -> None:
            flat = memory[aliases.get(name, name)]
            at = torch.as_tensor(index_of(sympy.sympify(index), env))
            shape = torch.broadcast_shapes(at.shape, tuple(grid[:outer]) + (1,) * len(whole))
            flat[at.expand(shape).reshape(-1)] = value.expand(shape).reshape(-1).to(flat.dtype)

        def reduction(self, dtype: Any, src_dtype: Any, reduction_type: str, value: Any) -> Any:
            if reduction_type not in REDUCTIONS or isinstance(value, tuple):
                raise CannotInterpret(f"the reduction {reduction_type}")
            return REDUCTIONS[reduction_type](value.expand(grid), whole)

        def constant(self, value: Any, dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(value, dtype=torch.float32 if dtype in NARROW else dtype)

        def index_expr(self, expr: Any, dtype: torch.dtype) -> torch.Tensor:
            return torch.as_tensor(index_of(sympy.sympify(expr), env)).to(dtype)

        value_expr = index_expr

        def to_dtype(
            self, x: Any, dtype: torch.dtype, src_dtype: Any = None, use_compute_types: bool = True
        ) -> torch.Tensor:
            return _wide(x.to(dtype))

        def to_dtype_bitcast(self, x: Any, dtype: torch.dtype, src_dtype: torch.dtype) -> torch.Tensor:
            return _wide(x.to(src_dtype).view(dtype))

        def trunc_to_int(self, x: Any, dtype: torch.dtype) -> torch.Tensor:
            return x.trunc().to(dtype)

        def round_to_int(
            self, x: Any, dtype: torch.dtype, src_dtype: Any = None, use_compute_types: bool = True
        ) -> torch.Tensor:
            return x.round().to(dtype)

        def floor_to_int(self, x: Any, dtype: torch.dtype) -> torch.Tensor:
            return x.floor().to(dtype)

        def ceil_to_int(self, x: Any, dtype: torch.dtype) -> torch.Tensor:
            return x.ceil().to(dtype)

        def where(self, condition: Any, a: Any, b: Any) -> torch.Tensor:
            return torch.where(condition.bool(), a, b)

        def masked(self, mask: Any, body: Callable[[], Any], other: Any) -> torch.Tensor:
            value = body()
            value = getattr(value, "value", value)
            return torch.where(torch.as_tensor(mask).bool(), value, torch.tensor(other, dtype=value.dtype))

        def indirect_indexing(self, x: Any, size: Any, check: bool = True, wrap_neg: bool = True) -> sympy.Symbol:
            symbol = sympy.Symbol(f"indirect{len(env)}", integer=True)
            at = x.long()
            env[symbol] = torch.where(at < 0, at + int(size), at) if wrap_neg else at
            return symbol

        def check_bounds(self, expr: Any, size: Any, lower: bool, upper: bool) -> None:
            return None

        def device_assert_async(self, cond: Any, msg: str) -> None:
            return None

    return Interpreter()


def _ints(sizes: Iterable[Any], graph: Any) -> list[int]:
    return [
        int(s) if isinstance(s, (int, sympy.Integer)) else int(graph.sizevars.shape_env.size_hint(s)) for s in sizes
    ]


def flat_of(tensor: torch.Tensor) -> torch.Tensor:
    """The memory that a tensor's own strides reach, as a copy."""
    if tensor.numel() == 0:
        return tensor.new_zeros(1)
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return torch.as_strided(tensor.detach(), (reach,), (1,), tensor.storage_offset()).clone()


class Run:
    """The IR of one graph, run from its inputs. `values` are those of the FX graph that it was lowered from, by node name: they
    stand in for library calls, which have no loops to interpret."""

    def __init__(self, graph: Any, inputs: list[Any], values: dict[str, Any]) -> None:
        self.graph, self.values = graph, values
        self.memory: dict[str, torch.Tensor] = {}
        self.aliases: dict[str, str] = {}
        self.skipped: list[str] = []
        for name, value in zip(graph.graph_input_names, inputs, strict=False):
            if isinstance(value, torch.Tensor):
                self.memory[name] = flat_of(value)
        for name, value in graph.constants.items():
            self.memory[name] = flat_of(value)

    def tensor(self, name: str, buffer: Any) -> torch.Tensor:
        """What a buffer holds now."""
        layout = buffer.get_layout()
        size, stride = _ints(layout.size, self.graph), _ints(layout.stride, self.graph)
        return torch.as_strided(
            self.memory[self.aliases.get(name, name)], size, stride, _ints([layout.offset], self.graph)[0]
        )

    def step(self, operation: Any) -> bool:
        """Run one operation; False where its value was taken from the graph instead."""
        with seam.virtualized.set_graph_handler(self.graph):
            self._allocate(operation)
            if isinstance(operation, seam.ir.ComputedBuffer):
                try:
                    self._loops(operation)
                    return True
                except CannotInterpret as error:
                    self.skipped.append(f"{operation.get_name()}: {error}")
            self._take(operation)
        return False

    def _allocate(self, operation: Any) -> None:
        for buffer in operation.get_outputs():
            name, layout = buffer.get_name(), buffer.get_output_spec()
            if isinstance(layout, seam.ir.MutationLayoutSHOULDREMOVE):
                target = layout.get_buffer().get_name()
                self.aliases[name] = self.aliases.get(target, target)
            elif isinstance(layout, seam.ir.Layout) and name not in self.memory:
                size, stride = _ints(layout.size, self.graph), _ints(layout.stride, self.graph)
                reach = 1 + sum((s - 1) * t for s, t in zip(size, stride, strict=True)) if 0 not in size else 1
                self.memory[name] = torch.zeros(reach + _ints([layout.offset], self.graph)[0], dtype=layout.dtype)

    def _loops(self, buffer: Any) -> None:
        sizes, inner = (
            _ints(buffer.data.get_pointwise_size(), self.graph),
            _ints(buffer.data.get_reduction_size(), self.graph),
        )
        if type(buffer.data).__name__ in ("Scan", "Sort"):
            raise CannotInterpret(f"a {type(buffer.data).__name__.lower()}")
        grid = [*sizes, *inner]
        if 0 in grid:
            return
        symbols = [sympy.Symbol(f"i{k}", integer=True, nonnegative=True) for k in range(len(grid))]
        env: dict[Any, Any] = {
            s: torch.arange(n).reshape([n if k == d else 1 for k in range(len(grid))])
            for d, (s, n) in enumerate(zip(symbols, grid, strict=True))
        }
        outer, rest = symbols[: len(sizes)], symbols[len(sizes) :]
        handler = make_interpreter(self.memory, self.aliases, env, grid, len(sizes))
        with seam.virtualized.set_ops_handler(handler):
            store = buffer.get_store_function()
            store(outer, rest) if inner else store(outer)

    def _take(self, operation: Any) -> None:
        origin = getattr(operation, "origin_node", None)
        value = self.values.get(origin.name) if origin is not None else None
        for buffer in operation.get_outputs():
            name = buffer.get_name()
            if isinstance(value, torch.Tensor) and name in self.memory:
                try:
                    target = self.tensor(name, buffer)
                    if target.shape == value.shape:
                        target.copy_(value)
                except NotImplementedError:  # several outputs in one: its parts have the values
                    continue
