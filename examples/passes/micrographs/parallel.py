"""A row-parallel layer: its partial results are summed over the group, then normalized. The group is fake and sends nothing."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from conformance import Contract, Micrograph, Tensor, parameter, weight

if not dist.is_initialized():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)


class AllReduceNorm(Micrograph):
    """The functional collective, as DTensor and tensor-parallel layers call it."""

    dims = {"b": 4}
    inputs = (Tensor("b 32"),)
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.down, self.weight = weight(64, 32), parameter(64)

    def reduced(self, x: torch.Tensor) -> torch.Tensor:
        name = dist.group.WORLD.group_name  # type: ignore[union-attr]
        calls = torch.ops._c10d_functional
        return calls.wait_tensor(calls.all_reduce(x, "sum", name))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = self.reduced(x @ self.down.t())
        return self.weight * (total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6))


class InPlaceAllReduceNorm(AllReduceNorm):
    """`dist.all_reduce`, which writes into its argument: Dynamo captures it as the functional collective and a copy."""

    def reduced(self, x: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(x)
        return x
