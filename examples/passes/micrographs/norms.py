"""Norms as models write them, for the passes of this folder."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from conformance import Contract, Micrograph, Tensor, parameter

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
LARGEST = torch.finfo(FP8).max


class AddNorm(Micrograph):
    """Residual add, then RMSNorm over the last dim, written as -1."""

    dims = {"b": 2, "s": 7}
    inputs = (Tensor("b s 64", BF16), Tensor("b s 64", BF16))
    contract = Contract()
    dim = -1

    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter(64, dtype=BF16)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        wide = total.to(torch.float32)
        normal = wide * torch.rsqrt(wide.pow(2).mean(self.dim, keepdim=True) + 1e-6)
        return self.weight * normal.to(total.dtype), total


class AddNormPositiveDim(AddNorm):
    """The same with the last dim written as 2."""

    dim = 2


class AddNormScaled(Micrograph):
    """The residual counts twice: `torch.add(x, residual, alpha=2)` is no plain add."""

    dims = {"b": 2, "s": 7}
    inputs = (Tensor("b s 64", BF16), Tensor("b s 64", BF16))
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter(64, dtype=BF16)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.add(x, residual, alpha=2)
        wide = total.to(torch.float32)
        normal = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * normal.to(total.dtype), total


class AddFunctionalNorm(Micrograph):
    """The same through torch.nn.functional.rms_norm, which each target takes apart in its own way."""

    dims = {"b": 2, "s": 7}
    inputs = (Tensor("b s 64", BF16), Tensor("b s 64", BF16))
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter(64, dtype=BF16)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        return F.rms_norm(total, (64,), self.weight, 1e-6), total


class NormFp8(Micrograph):
    """RMSNorm, then fp8 with a static scale."""

    dims = {"b": 6}
    inputs = (Tensor("b 64", BF16), Tensor("1", fill="positive"))
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter(64, dtype=BF16)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        normal = self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(BF16)
        return (normal.to(torch.float32) / scale).clamp(-LARGEST, LARGEST).to(FP8)


class NormFp8Kept(NormFp8):
    """The norm is used in full precision as well: fusing it away would lose that."""

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        wide = x.to(torch.float32)
        normal = self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(BF16)
        return (normal.to(torch.float32) / scale).clamp(-LARGEST, LARGEST).to(FP8), normal
