"""What AutoDeploy's kernels for GPUs compute, in plain PyTorch, so that a graph that calls them can be run without a GPU. Where a
kernel promises less than the op that it stands for (one dtype, one shape, writes into its arguments), so does what is here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from conformance.backends.autodeploy.graph import custom_ops, packet_name


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)


def fused_add_rms_norm(x: Any, residual: Any, weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Both are written: `residual` becomes the sum, `x` the norm of it. They have one shape and one dtype."""
    if not isinstance(x, torch.Tensor) or not isinstance(residual, torch.Tensor):
        raise TypeError(f"fused_add_rms_norm takes two tensors, not {type(x).__name__} and {type(residual).__name__}")
    if x.shape != residual.shape or x.dtype != residual.dtype:
        raise ValueError(
            f"fused_add_rms_norm takes tensors of one shape and dtype, not {tuple(x.shape)} {x.dtype} and"
            f" {tuple(residual.shape)} {residual.dtype}"
        )
    residual.copy_(x + residual)
    x.copy_(rms_norm(residual, weight, eps))
    return x, residual


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def topk_softmax(logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = logits.float().topk(top_k, -1)
    return values.softmax(-1).to(logits.dtype), indices.to(torch.int32)


KERNELS: dict[str, Callable[..., Any]] = {
    "auto_deploy.flashinfer_rms_norm": rms_norm,
    "auto_deploy.triton_rms_norm": rms_norm,
    "flashinfer_fused_add_rms_norm": fused_add_rms_norm,
    "auto_deploy.flashinfer_silu_and_mul": silu_and_mul,
    "auto_deploy.triton_fused_topk_softmax": topk_softmax,
}
GPU_ONLY = ("flashinfer", "triton", "trtllm", "cutlass")


def program(gm: fx.GraphModule) -> Callable[..., Any] | None:
    """The graph with what its kernels compute in their place; None where it calls none, or one that is not known here."""
    called = [name for name in custom_ops(gm) if any(word in name for word in GPU_ONLY)]
    if not called or any(name not in KERNELS for name in called):
        return None
    return _Reference(gm).run


class _Reference(fx.Interpreter):
    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        kernel = KERNELS.get(packet_name(target))
        return kernel(*args, **kwargs) if kernel is not None else super().call_function(target, args, kwargs)
