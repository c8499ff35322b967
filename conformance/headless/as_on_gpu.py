"""Operators whose results a GPU lays out in another way, or gives in another dtype, than the CPU: the CPU's numbers, as CUDA has them.

A generated program asks for that layout, and eager on a GPU gives it. torch knows both without a GPU: the compiler asks it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from conformance.headless.seam import seam
from conformance.torch_seam import pytree, schema_of

aten = torch.ops.aten


def _as_on_gpu(operator: Any, compute: Callable[..., Any] | None = None) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        with seam.fake_mode() as mode:
            shapes = pytree.tree_map_only(torch.Tensor, partial(_shape, mode), (args, options))
            described = operator(*shapes[0], **shapes[1])
        return pytree.tree_map(_laid_out, (compute or operator)(*args, **options), described)

    return run


def _in_single(operator: Any) -> Callable[..., Any]:
    """Computed in float32, as a GPU does for half-precision inputs; what the operator writes to is written in its own dtype."""

    def run(*args: Any, **options: Any) -> Any:
        wide = pytree.tree_map_only(torch.Tensor, torch.Tensor.float, (args, options))
        result = operator(*wide[0], **wide[1])
        for argument, given, computed in zip(schema_of(operator).arguments, args, wide[0], strict=False):
            if argument.alias_info is not None and isinstance(given, torch.Tensor) and given is not computed:
                given.copy_(computed)
        return result

    return run


def _laid_out(result: Any, described: Any) -> Any:
    if not isinstance(result, torch.Tensor):
        return result
    if (result.stride(), result.dtype) == (described.stride(), described.dtype):
        return result
    return torch.empty_strided(described.shape, described.stride(), dtype=described.dtype).copy_(result)


def _shape(mode: Any, tensor: torch.Tensor) -> torch.Tensor:
    """What the compiler has in place of a tensor of the GPU."""
    shape = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return seam.fake_tensor(mode, shape, torch.device("cuda", 0))


def _cudnn_batch_norm(given: torch.Tensor, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any) -> Any:
    normed = STAND_INS[aten.native_batch_norm.default](given, weight, bias, mean, var, *rest)
    return *normed, torch.empty(0, dtype=torch.uint8)  # cuDNN's own memory between forward and backward


def _cudnn_batch_norm_backward(given: torch.Tensor, grad: torch.Tensor, weight: Any, *rest: Any) -> Any:
    backward = STAND_INS[aten.native_batch_norm_backward.default]
    *saved, eps, _ = rest
    return backward(grad, given, weight, *saved, True, eps, [True, True, True])


def _nonzero(tensor: torch.Tensor) -> torch.Tensor:
    """A GPU writes the places of one dim after those of the other. How many there are the compiler does not know: it is not asked."""
    return aten.nonzero.default(tensor).t().contiguous().t()


LAID_OUT = (  # cuFFT, cuDNN and cuSOLVER have layouts of their own; kernels of the host alone keep channels last
    aten._fft_c2c.default,
    aten._fft_r2c.default,
    aten._fft_c2r.default,
    aten.convolution.default,
    aten._linalg_svd.default,
    aten.reflection_pad2d.default,
    aten.replication_pad2d.default,
    aten.max_unpool2d.default,
    aten.upsample_bilinear2d.default,
    aten.pixel_shuffle.default,
    aten.nonzero_static.default,
)
NORMS = (  # means and deviations are float32 on a GPU
    aten.native_batch_norm.default,
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit.no_stats,
    aten._batch_norm_with_update.default,
    aten.native_batch_norm_backward.default,
)
STAND_INS: dict[Any, Callable[..., Any]] = {
    **{operator: _as_on_gpu(operator) for operator in LAID_OUT},
    **{operator: _as_on_gpu(operator, _in_single(operator)) for operator in NORMS},
    aten.nonzero.default: _nonzero,
    aten.cudnn_batch_norm.default: _cudnn_batch_norm,
    aten.cudnn_batch_norm_backward.default: _cudnn_batch_norm_backward,
}
