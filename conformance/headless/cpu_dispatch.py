"""Library calls of a program made for a described GPU: the same operator, done by the CPU on the same bytes.

Generated code calls more than its own kernels: `extern_kernels.mm`, `aten.convolution`, custom operators, the copies
that AOTAutograd makes. Under `Host` an operator that gets described CUDA tensors runs on their host side; views and
other things that compute nothing run as they are. The compiler itself does not see this mode.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance.headless import attention, recurrent
from conformance.headless.errors import NotInterpretable
from conformance.headless.memory import on_device, on_host
from conformance.headless.seam import seam
from conformance.torch_seam import HigherOrderOperator, TorchDispatchMode, pytree, schema_of

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
        _check_devices(func, flat)
        _check_dtypes(func, flat)
        host = [on_host(v) if isinstance(v, torch.Tensor) else CPU if _is_cuda(v) else v for v in flat]
        back = {id(h): v for h, v in zip(host, flat, strict=True) if isinstance(v, torch.Tensor)}
        host_args, host_kwargs = pytree.tree_unflatten(host, spec)
        try:
            result = DONE_BY.get(func, func)(*host_args, **host_kwargs)
        except RuntimeError as error:
            if NOT_RESIZABLE not in str(error):
                raise
            result = _resizing(func, args, kwargs)
        to_device = asked != "cpu"

        def returned(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) in back:
                return back[id(tensor)]
            return on_device(tensor) if to_device else tensor

        return pytree.tree_map_only(torch.Tensor, returned, result)


NOT_RESIZABLE = "resize storage that is not resizable"  # torch's own words


def _resizing(func: Any, args: tuple, kwargs: dict) -> Any:
    """What a call writes to must grow (`out=torch.empty(0)`, `resize_`), and memory of the described device cannot: each such
    tensor gets new memory."""
    named = dict(zip([a.name for a in schema_of(func).arguments], args, strict=False)) | kwargs
    written = {a.name for a in schema_of(func).arguments if a.alias_info is not None and a.alias_info.is_write}
    host: dict[str, Any] = {}
    for name, value in named.items():
        grows = name in written and isinstance(value, torch.Tensor)
        host[name] = _copy_of(on_host(value)) if grows else pytree.tree_map_only(torch.Tensor, on_host, value)
    positional = [host[a.name] for a in schema_of(func).arguments if a.name in host and not a.kwarg_only]
    func(*positional, **{a.name: host[a.name] for a in schema_of(func).arguments if a.name in host and a.kwarg_only})
    outputs = [named[name] for name in named if name in written and isinstance(named[name], torch.Tensor)]
    for name in written & named.keys():
        if isinstance(named[name], torch.Tensor):
            named[name].data = on_device(host[name])
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor over memory of its own, which can grow."""
    memory = tensor.untyped_storage().clone()
    return torch.empty(0, dtype=tensor.dtype).set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())


def _with_branches(func: Any, args: tuple, kwargs: dict) -> Any:
    """Control flow computes nothing itself: what its branches and bodies call is done here again."""
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
    **attention.STAND_INS,
    **recurrent.STAND_INS,
    aten._efficientzerotensor.default: aten.zeros.default,
}


def changes_shape_alone(func: Any) -> bool:
    """`as_strided_`, `transpose_` and their like: sizes and strides of the tensor itself change, and no value of it."""
    return torch.Tag.inplace_view in func.tags and func.overloadpacket not in NEEDS_MEMORY


NEEDS_MEMORY = {aten.resize_, aten.resize_as_, aten.set_}


def _check_devices(func: Any, flat: list[Any]) -> None:
    """On a GPU an operator refuses tensors of the host, other than numbers and indices."""
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]
    strangers = [tensor for tensor in tensors if not tensor.is_cuda and tensor.dim()]
    if strangers and len(strangers) < len(tensors) and func.overloadpacket not in TAKES_BOTH:
        raise RuntimeError(f"{TWO_DEVICES}, but found at least two devices, cuda:0 and cpu!")


def _check_dtypes(func: Any, flat: list[Any]) -> None:
    """A GPU multiplies no matrices of integers; the host does."""
    if func.overloadpacket in MATMULS:
        for value in flat:
            if isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex()):
                raise RuntimeError(f"{func.overloadpacket.__name__} on a GPU is not implemented for {value.dtype}")


MATMULS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.addbmm, aten.mv, aten.addmv, aten.dot, aten.vdot}
TWO_DEVICES = "Expected all tensors to be on the same device"  # torch's own words
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
