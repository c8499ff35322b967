"""RMSNorm of queries and keys with the rotary embedding, in the three ways that models write the last step."""

from __future__ import annotations

import torch

from conformance import Contract, Micrograph, Tensor, parameter


def rotated(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class NormRope(Micrograph):
    """Queries and keys, each normalized and rotated: two products and a sum."""

    dims = {"b": 2, "s": 6}
    inputs = (Tensor("b 4 s 16"), Tensor("b 2 s 16"), Tensor("s 16"), Tensor("s 16"))
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = parameter(16), parameter(16)

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def rope(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return x * cos + rotated(x) * sin

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.rope(self.norm(q, self.query), cos, sin), self.rope(self.norm(k, self.key), cos, sin)


class NormRopeAddcmul(NormRope):
    """The same with `torch.addcmul` for the second product and the sum."""

    def rope(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(x * cos, rotated(x), sin)


class NormRopeSplit(NormRope):
    """The two halves computed apart, then put together: another graph for the same numbers."""

    def rope(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        (c1, c2), (s1, s2) = cos.chunk(2, dim=-1), sin.chunk(2, dim=-1)
        return torch.cat((first * c1 - second * s1, second * c2 + first * s2), dim=-1)
