"""All-reduce of a row-parallel layer, then RMSNorm, into one op. The process group is fake: nothing is sent, one process is enough.

conformance pass examples/passes/all_reduce_norm.py:all_reduce_norm
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

EPS = 1e-6
micrographs = "parallel.*"
if not dist.is_initialized():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
assert dist.group.WORLD is not None
GROUP = dist.group.WORLD.group_name
collectives = torch.ops._c10d_functional


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS))


@torch.library.custom_op("conformance_examples::all_reduce_norm", mutates_args=())
def fused(x: torch.Tensor, weight: torch.Tensor, group: str) -> torch.Tensor:
    return norm(collectives.wait_tensor(collectives.all_reduce(x, "sum", group)), weight)


@fused.register_fake
def _(x: torch.Tensor, weight: torch.Tensor, group: str) -> torch.Tensor:
    return torch.empty_like(x)


def reduce_then_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return norm(collectives.wait_tensor(collectives.all_reduce(x, "sum", GROUP)), weight)


def replacement(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.ops.conformance_examples.all_reduce_norm(x, weight, GROUP)


def inputs() -> list[torch.Tensor]:
    return [torch.empty(4, 64), torch.empty(64)]


all_reduce_norm = (reduce_then_norm, replacement, inputs)
