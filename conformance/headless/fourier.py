"""Fourier transforms: the CPU's numbers in the layout that cuFFT gives them. A generated program asks for that layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.torch_seam import pytree

aten = torch.ops.aten


def _laid_out(operator: Any) -> Callable[..., torch.Tensor]:
    def run(*args: Any, **options: Any) -> torch.Tensor:
        # torch takes a tensor without device or data for one of CUDA's.
        shapes = pytree.tree_map_only(torch.Tensor, _shape, (args, options))
        layout = operator(*shapes[0], **shapes[1])
        result = torch.empty_strided(layout.shape, layout.stride(), dtype=layout.dtype)
        return result.copy_(operator(*args, **options))

    return run


def _shape(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


STAND_INS: dict[Any, Callable[..., Any]] = {
    operator: _laid_out(operator) for operator in (aten._fft_c2c.default, aten._fft_r2c.default, aten._fft_c2r.default)
}
