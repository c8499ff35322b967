"""Library calls of a program made for a described GPU: the same operator, done by the CPU on the same bytes.

Generated code calls more than its own kernels: `extern_kernels.mm`, `aten.convolution`, custom operators, the copies
that AOTAutograd makes. Under `Host` an operator that gets described CUDA tensors runs on their host side; views and
other things that compute nothing run as they are. The compiler itself does not see this mode.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance.headless import as_on_gpu, attention, recurrent
from conformance.headless.errors import NotInterpretable
from conformance.headless.memory import on_device, on_host, with_own_memory
from conformance.headless.seam import seam
from conformance.torch_seam import HigherOrderOperator, TorchDispatchMode, pytree, schema_of, storage_key

aten = torch.ops.aten


class Host(TorchDispatchMode):
    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if seam.active_mode(seam.mode_keys.FAKE) is not None:  # nothing is computed there
            return func(*args, **kwargs)
        if isinstance(func, HigherOrderOperator):
            return _with_branches(func, args, kwargs)
        flat, spec = pytree.tree_flatten((args, kwargs))
        plain = {type(value) for value in flat if isinstance(value, torch.Tensor)} <= {torch.Tensor, torch.nn.Parameter}
        asked = _asked_device(flat)
        if not plain or not (asked == "cuda" or any(isinstance(v, torch.Tensor) and v.is_cuda for v in flat)):
            return func(*args, **kwargs)
        if is_view(func) or changes_shape_alone(func):
            return func(*args, **kwargs)
        written = _written(func, args, kwargs)
        _check_devices(func, flat, written)
        _check_dtypes(func, flat)
        host: list[Any] = [on_host(v) if isinstance(v, torch.Tensor) else CPU if _is_cuda(v) else v for v in flat]
        before = {i: host[i].untyped_storage() for i, v in enumerate(flat) if id(v) in written and v.is_cuda}
        try:
            result = _called(func, host, spec)
        except RuntimeError as error:
            if NOT_RESIZABLE not in str(error):
                raise
            # Memory of the described device cannot grow: what the call writes to (`out=torch.empty(0)`, `resize_`) gets memory that can.
            host = [with_own_memory(h) if id(v) in written else h for h, v in zip(host, flat, strict=True)]
            result = _called(func, host, spec)
        # Also what the call gave other memory (`x.data = y`).
        for i, memory in before.items():
            if storage_key(host[i]) != storage_key(memory):
                flat[i].data = on_device(host[i])
        back = {id(h): v for h, v in zip(host, flat, strict=True) if isinstance(v, torch.Tensor)}
        to_device = asked != "cpu"

        def returned(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) in back:
                return back[id(tensor)]
            return on_device(tensor) if to_device else tensor

        return pytree.tree_map_only(torch.Tensor, returned, result)


NOT_RESIZABLE = "resize storage that is not resizable"  # torch's own words


def _called(func: Any, flat: list[Any], spec: Any) -> Any:
    args, kwargs = pytree.tree_unflatten(flat, spec)
    return DONE_BY.get(func, func)(*args, **kwargs)


def _written(func: Any, args: tuple, kwargs: dict) -> set[int]:
    """The tensors that a call writes to, by their ids."""
    if not schema_of(func).is_mutable:
        return set()
    arguments = schema_of(func).arguments
    given = dict(zip([a.name for a in arguments], args, strict=False)) | kwargs
    names = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    return {id(given[name]) for name in names if isinstance(given.get(name), torch.Tensor)}


def _with_branches(func: Any, args: tuple, kwargs: dict) -> Any:
    """Control flow computes nothing itself: what its branches and bodies call is done here again."""
    if func.name() == "invoke_subgraph":  # its own kernel refuses to run under a mode
        plain, args = args[0], args[2:]
    else:
        plain = func.py_kernels.get(seam.dispatch_keys.CompositeExplicitAutograd)
    if plain is None:
        raise NotInterpretable(f"the higher order operator {func.name()}")
    with Host():
        return plain(*args, **kwargs)


CPU = torch.device("cpu")


def _is_cuda(value: Any) -> bool:
    return isinstance(value, torch.device) and value.type == "cuda"


def _asked_device(flat: list[Any]) -> str | None:
    """The device that a call names: `aten.full(..., device=cuda)`, `aten._to_copy(..., device=cpu)`."""
    return next((value.type for value in flat if isinstance(value, torch.device)), None)


def is_view(func: Any) -> bool:
    """Does the operator only give another view of its first argument? Known from its schema."""
    schema = schema_of(func)
    aliased = [a.alias_info for a in schema.arguments if a.alias_info is not None]
    returned = [r.alias_info for r in schema.returns]
    views = bool(aliased) and not any(a.is_write for a in aliased) and all(r is not None for r in returned)
    return views or func in NOTHING


NOTHING = {aten.detach.default, aten.alias.default, aten.lift_fresh.default}
# A tensor of zeros that forward-mode differentiation makes without any memory: here every tensor has some.
DONE_BY: dict[Any, Any] = {
    **as_on_gpu.STAND_INS,
    **attention.STAND_INS,
    **recurrent.STAND_INS,
    aten._efficientzerotensor.default: aten.zeros.default,
}


def changes_shape_alone(func: Any) -> bool:
    """`as_strided_`, `transpose_` and their like: sizes and strides of the tensor itself change, and no value of it."""
    return torch.Tag.inplace_view in func.tags and func.overloadpacket not in NEEDS_MEMORY


NEEDS_MEMORY = {aten.resize_, aten.resize_as_, aten.set_}


def _check_devices(func: Any, flat: list[Any], written: set[int]) -> None:
    """On a GPU an operator refuses tensors of the host, other than numbers and indices; to a number it does not write either."""
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]
    strangers = [tensor for tensor in tensors if not tensor.is_cuda and (tensor.dim() or id(tensor) in written)]
    if strangers and len(strangers) < len(tensors) and func.overloadpacket not in TAKES_BOTH:
        raise RuntimeError(f"{TWO_DEVICES}, but found at least two devices, cuda:0 and cpu!")


def _check_dtypes(func: Any, flat: list[Any]) -> None:
    """A GPU multiplies no matrices of integers; the host does."""
    if func.overloadpacket in MATMULS:
        for value in flat:
            if isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex()):
                raise NotImplementedError(f'"{func.overloadpacket.__name__}{NO_CUDA_KERNEL} {value.dtype}')


MATMULS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.addbmm, aten.mv, aten.addmv, aten.dot, aten.vdot}
# torch's own words
TWO_DEVICES = "Expected all tensors to be on the same device"
NO_CUDA_KERNEL = '_cuda" not implemented for'
CPU_ALONE = (
    "ZeroDivisionError",  # a GPU divides integers by zero,
    "Half without overflow",  # computes half in float,
    "failed to converge",  # and has other algorithms for matrices that cannot be solved
)
TAKES_BOTH = {
    aten.copy_,
    aten.copy,
    aten._foreach_copy_,
    aten._to_copy,
    aten.index,
    aten._unsafe_index,
    aten.index_put,
    aten.index_put_,
    aten._unsafe_index_put,
    aten._index_put_impl_,
}
