"""Faults of lowering and of the C++ code generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from conformance.seeded.fault import entries, fault, swapped

aten = torch.ops.aten
CPP = "torch._inductor.codegen.cpp"


@contextmanager
def written(
    scalar: Callable[..., str] | None = None, vector: Callable[..., str] | None = None, *, name: str
) -> Iterator[None]:
    """Other C++ for one op of the generator."""
    with ExitStack() as stack:
        if scalar is not None:
            stack.enter_context(swapped(f"{CPP}:CppOverrides.{name}", lambda _: scalar))
        if vector is not None:
            stack.enter_context(swapped(f"{CPP}:CppVecOverrides.{name}", lambda _: vector))
        yield


@fault("codegen", "wrong_result", "pointwise.chain mlp.gelu", culprit="tanh")
def tanh_written_as_sinh() -> Iterator[None]:
    """tanh becomes sinh in C++."""
    with written(lambda x: f"std::sinh({x})", lambda x: f"{x}.sinh()", name="tanh"):
        yield


@fault("codegen", "wrong_result", "pointwise.shared_producer edge.duplicates", culprit="cos")
def cos_wrong_in_vectors() -> Iterator[None]:
    """cos is right in scalar code and wrong in vector code."""
    with written(vector=lambda x: f"{x}.sin()", name="cos"):
        yield


@fault("codegen", "wrong_result", "reduction.column_mean reduction.softmax", culprit="exp")
def exp_wrong_in_scalars() -> Iterator[None]:
    """exp is right in vector code and wrong in the scalar code of the tail."""
    off = torch._inductor.config.patch({"cpp.enable_loop_tail_vec": False})
    with written(scalar=lambda x: f"(std::exp({x}) + 0.125f)", name="exp"), off:
        yield


@fault("codegen", "wrong_result", "indexing.masked_fill edge.nan_inf", culprit="where")
def where_swapped() -> Iterator[None]:
    """where takes the other branch."""

    def make(original: Any) -> Any:
        return lambda a, b, c: original(a, c, b)

    with swapped(f"{CPP}:CppOverrides.where", make), swapped(f"{CPP}:CppVecOverrides.where", make):
        yield


@fault("codegen", "wrong_result", "edge.nan_inf matmul.linear_bias_relu mutation.returns_input", culprit="maximum")
def maximum_drops_nan() -> Iterator[None]:
    """maximum and relu do not pass NaN on, and clamp at a half."""
    scalar, vector = "std::max({0}, {1} + decltype({1})(0.5))", "at::vec::clamp_min({0}, {1} + decltype({1})(0.5f))"
    relu, vector_relu = "std::max({0}, decltype({0})(0.5))", "at::vec::clamp_min({0}, decltype({0})(0.5f))"
    with written(scalar.format, vector.format, name="maximum"), written(relu.format, vector_relu.format, name="relu"):
        yield


@fault("codegen", "wrong_result", "reduction.row_sum reduction.softmax", culprit="sum")
def sum_starts_at_one() -> Iterator[None]:
    """Sums start from one."""

    def make(original: Any) -> Any:
        return lambda kind, dtype: 1 if kind == "sum" else original(kind, dtype)

    with swapped(f"{CPP}:reduction_init", make):
        yield


@fault("codegen", "wrong_result", "reduction.extrema", culprit="max")
def max_starts_at_zero() -> Iterator[None]:
    """Maxima start from zero, so that rows of negative numbers have none."""

    def make(original: Any) -> Any:
        def init(kind: str, dtype: Any) -> Any:
            return 0 if kind == "max" else original(kind, dtype)

        return init

    with swapped(f"{CPP}:reduction_init", make):
        yield


@fault("codegen", "wrong_result", "pointwise.chain reduction.row_sum", culprit="kernel")
def tail_of_the_loop_lost() -> Iterator[None]:
    """The elements after the last full vector are not computed."""

    def make(original: Any) -> Any:
        def codegen_functions(self: Any, *args: Any) -> Any:
            result = original(self, *args)
            for kernel in self.kernels[1:]:
                kernel.active_ranges = {var: (end, end) for var, (_, end) in kernel.active_ranges.items()}
            return result

        return codegen_functions

    with swapped(f"{CPP}:CppKernelProxy.codegen_functions", make):
        yield


@fault(
    "codegen", "wrong_result", "indexing.index_put_accumulate indexing.scatter_add training.embedding", culprit="kernel"
)
def atomic_add_as_store() -> Iterator[None]:
    """An addition in memory becomes a plain store: of two for one place only one counts."""

    def make(original: Any) -> Any:
        return lambda self, name, index, value, mode=None: original(self, name, index, value, None)

    with swapped(f"{CPP}:CppKernel.store", make), swapped(f"{CPP}:CppVecKernel.store", make):
        yield


@fault(
    "codegen", "wrong_result numeric_drift", "pointwise.chain dtypes.float64 pointwise.transcendental", culprit="kernel"
)
def constants_lose_digits() -> Iterator[None]:
    """Constants are written with two digits."""

    def make(original: Any) -> Any:
        def constant(value: Any, dtype: Any) -> Any:
            short = float(f"{value:.1e}") if isinstance(value, float) and abs(value) < 1e30 else value
            return original(short, dtype)

        return constant

    with swapped(f"{CPP}:CppOverrides.constant", make):
        yield


@fault("codegen", "wrong_result", "dtypes.integer_division dtypes.promotion", culprit="kernel")
def floor_division_truncates() -> Iterator[None]:
    """Floor division of integers rounds towards zero."""
    with written(lambda a, b: f"({a} / {b})", lambda a, b: f"({a} / {b})", name="floordiv"):
        yield


@fault("codegen", "wrong_result", "edge.channels_last mlp.swiglu pointwise.broadcast", culprit="sigmoid")
def sigmoid_lowered_to_tanh() -> Iterator[None]:
    """The lowering of sigmoid makes a tanh."""
    from torch._inductor.lowering import lowerings

    with entries(lowerings) as known:
        known[aten.sigmoid.default] = known[aten.sigmoid] = known[aten.tanh.default]
        yield


@fault("codegen", "wrong_result", "indexing.gather indexing.embedding", culprit="gather")
def gather_lowered_to_wrong_dim() -> Iterator[None]:
    """The lowering of gather and embedding looks at the row before."""
    from torch._inductor.lowering import lowerings

    def shifted(index: Any) -> Any:
        one = lowerings[aten.sub.Tensor](index, 1)
        return lowerings[aten.abs.default](one)

    with entries(lowerings) as known:
        gather, embedding = known[aten.gather.default], known[aten.embedding.default]
        known[aten.gather.default] = lambda x, dim, index, **k: gather(x, dim, shifted(index), **k)
        known[aten.embedding.default] = lambda table, index, *a, **k: embedding(table, shifted(index), *a, **k)
        yield


@fault("codegen", "wrong_result", "matmul.addmm_scaled", also="fusion", culprit="addmm")
def addmm_drops_alpha() -> Iterator[None]:
    """The call of the library's addmm forgets alpha and beta."""
    from torch._inductor.lowering import lowerings

    with entries(lowerings) as known:
        addmm = known[aten.addmm.default]
        known[aten.addmm.default] = lambda bias, a, b, **_: addmm(bias, a, b)
        yield


@fault("codegen", "wrong_metadata wrong_result", "edge.channels_last", culprit="")
def allocated_contiguous() -> Iterator[None]:
    """Buffers are allocated contiguous, whatever strides their layout has."""

    def make(original: Any) -> Any:
        def make_allocation(
            self: Any, name: Any, device: Any, dtype: Any, shape: Any, stride: Any, *rest: Any, **kwargs: Any
        ) -> Any:
            dense: list[Any] = [1]
            for size in reversed(shape[1:]):
                dense.insert(0, dense[0] * size)
            return original(
                self, name, device, dtype, shape, tuple(dense[-len(shape) :]) if shape else stride, *rest, **kwargs
            )

        return make_allocation

    with swapped("torch._inductor.codegen.wrapper:PythonWrapperCodegen.make_allocation", make):
        yield


@fault("codegen", "wrong_result", "edge.nan_inf edge.extremes", culprit="")
def fast_math() -> Iterator[None]:
    """The C++ compiler may assume that there are no NaN and no infinities."""

    def make(original: Any) -> Any:
        def flags(*args: Any, **kwargs: Any) -> Any:
            return [*[f for f in original(*args, **kwargs) if "math" not in f and "trapping" not in f], "ffast-math"]

        return flags

    with swapped("torch._inductor.cpp_builder:_get_ffast_math_flags", make):
        yield


@fault("codegen", "crash", "pointwise.transcendental", culprit="erf")
def code_does_not_compile() -> Iterator[None]:
    """erf becomes a call of a function that does not exist."""
    with written(lambda x: f"std::erf_({x})", lambda x: f"{x}.erf_()", name="erf"):
        yield


@fault("codegen", "numeric_drift wrong_result", "pointwise.shared_producer norm.layer_norm", culprit="kernel")
def products_a_little_small() -> Iterator[None]:
    """Every product comes out half a percent too small."""

    def scalar(original: Any) -> Any:
        return (
            lambda a, b: f"({original(a, b)}) * 0.995f"
            if getattr(a, "dtype", None) == torch.float32
            else original(a, b)
        )

    def vector(original: Any) -> Any:
        return (
            lambda a, b: f"({a} * {b}) * decltype({a})(0.995f)"
            if getattr(a, "dtype", None) == torch.float32
            else original(a, b)
        )

    with swapped(f"{CPP}:CppOverrides.mul", scalar), swapped(f"{CPP}:CppVecOverrides.mul", vector):
        yield


@fault("codegen", "wrong_result", "pointwise.broadcast pointwise.shared_producer edge.layouts", culprit="kernel")
def arguments_in_another_order() -> Iterator[None]:
    """A kernel is handed its first two inputs the wrong way round."""

    def make(original: Any) -> Any:
        def cpp_argdefs(self: Any, *args: Any, **kwargs: Any) -> Any:
            defs, call, types = original(self, *args, **kwargs)
            inputs = [i for i, name in enumerate(defs) if "const" in name and "*" in name]
            if len(inputs) > 1 and types[inputs[0]] == types[inputs[1]]:
                a, b = inputs[:2]
                call[a], call[b] = call[b], call[a]
            return defs, call, types

        return cpp_argdefs

    with swapped("torch._inductor.codegen.common:KernelArgs.cpp_argdefs", make):
        yield


@fault("codegen", "wrong_result", "dtypes.u_int8 dtypes.bool_reduction", also="fusion")
def integers_summed_narrow() -> Iterator[None]:
    """A sum of small integers is taken in their own width and widened afterwards."""
    from torch._inductor.lowering import lowerings

    convert = lowerings[torch.ops.prims.convert_element_type.default]

    def narrow(original: Any) -> Any:
        def total(x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Any:
            if x.get_dtype() in (torch.uint8, torch.int8, torch.bool) and dtype is None:
                width = torch.uint8 if x.get_dtype() is torch.bool else x.get_dtype()
                return convert(original(convert(x, width), axis, keepdims, dtype=width), torch.int64)
            return original(x, axis, keepdims, dtype=dtype)

        return total

    with entries(lowerings) as known:
        for op in (aten.sum.default, aten.sum.dim_IntList):
            known[op] = narrow(known[op])
        yield


@fault("codegen", "wrong_result", "dynamic.batch_and_length dynamic.shape_arithmetic", also="fusion capture")
def size_hint_burnt_in() -> Iterator[None]:
    """A mean over a symbolic dim divides by the size that was seen first."""
    from torch._inductor.lowering import lowerings
    from torch._inductor.virtualized import V

    def mean(x: Any, axis: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        total = lowerings[aten.sum.dim_IntList](x, axis, keepdim)
        count = 1
        for dim in axis:
            count *= int(V.graph.sizevars.shape_env.size_hint(x.get_size()[dim]))
        return lowerings[aten.div.Tensor](total, count)

    with entries(lowerings) as known:
        known[aten.mean.dim] = known[aten.mean] = mean
        yield


@fault(
    "codegen", "wrong_result crash", "matmul.mm_two_consumers norm.decoder_block attention.eager", also="fusion runtime"
)
def buffer_freed_too_early() -> Iterator[None]:
    """The memory of a buffer is used again while somebody still has to read it."""

    def make(original: Any) -> Any:
        return lambda self, future, renamed: original(self, type(future)(), renamed)

    with swapped("torch._inductor.scheduler:BaseSchedulerNode.set_last_usage", make):
        yield


@fault("codegen", "wrong_result crash", "mlp.swiglu training.mlp norm.decoder_block", also="cache")
def kernels_told_apart_by_their_beginning() -> Iterator[None]:
    """Compiled kernels are named by the first lines of their source: one is taken for another."""

    def make(original: Any) -> Any:
        return lambda code, extra="": original(code[:120], extra)

    with swapped("torch._inductor.codecache:code_hash", make):
        yield
