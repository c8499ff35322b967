"""Plain PyTorch for kernels that need a GPU, so that a fused graph can be run, and its values looked at, anywhere.

Each is what the kernel's own documentation says it does, writes into its arguments included: a pass that fuses in place
and loses a read gives a wrong value here just as it does on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.torch_seam import TorchDispatchMode, schema_of


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, **_: Any) -> torch.Tensor:
    wide = x.to(torch.float32)
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (weight.to(torch.float32) * wide).to(x.dtype)


def add_rms_norm_(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, **_: Any) -> None:
    residual.add_(x)
    x.copy_(rms_norm(residual, weight, eps))


def silu_and_mul(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    gate, up = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def swiglu_mlp(
    x: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    gate_up_bias: torch.Tensor | None = None,
    down_bias: torch.Tensor | None = None,
) -> torch.Tensor:
    linear = torch.nn.functional.linear
    return linear(silu_and_mul(linear(x, gate_up, gate_up_bias)), down, down_bias)


KERNELS: dict[str, Callable[..., Any]] = {
    "auto_deploy::flashinfer_rms_norm": rms_norm,
    "auto_deploy::triton_rms_norm": rms_norm,
    "auto_deploy::flashinfer_fused_add_rms_norm_inplace": add_rms_norm_,
    "auto_deploy::flashinfer_silu_and_mul": silu_and_mul,
    "auto_deploy::fused_swiglu_mlp": swiglu_mlp,
    "trtllm::flashinfer_rmsnorm": rms_norm,
    "trtllm::flashinfer_fused_add_rmsnorm": add_rms_norm_,
    "trtllm::flashinfer_silu_and_mul": silu_and_mul,
}


class ReferenceKernels(TorchDispatchMode):
    """While this is on, the kernels above run in place of theirs."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if str(func) == "auto_functionalized" and schema_of(args[0]).name in KERNELS:
            return _on_copies(args[0], kwargs)
        schema = schema_of(func)
        name = schema.name if schema is not None else ""
        if name in KERNELS:
            names = [argument.name for argument in schema.arguments]
            bound = [*args, *(kwargs.pop(n) for n in names[len(args) :] if n in kwargs)]
            return KERNELS[name](*bound)
        return func(*args, **kwargs)


def _on_copies(op: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """What `auto_functionalized` means: the op on copies of what it writes into, and the copies as results."""
    schema = schema_of(op)
    written = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    copies = {name: kwargs[name].clone() for name in written}
    given = {**kwargs, **copies}
    result = KERNELS[schema.name](*(given[a.name] for a in schema.arguments if a.name in given))
    return (result, *copies.values())
