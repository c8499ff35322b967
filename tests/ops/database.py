"""A small operator database for tests: real OpInfos of real operators, with few samples."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput

from conformance.ops.operator import Operator

FLOATS = (torch.float32, torch.bfloat16)


def pairs(info: Any, device: str, dtype: torch.dtype, requires_grad: bool, **_: Any) -> Iterator[SampleInput]:
    for sizes in ((3, 4), (2, 3, 4), (5,)):
        a, b = (torch.testing.make_tensor(sizes, device=device, dtype=dtype, low=1, high=9) for _ in range(2))
        yield SampleInput(a.requires_grad_(requires_grad), args=(b,))


def matrices(info: Any, device: str, dtype: torch.dtype, requires_grad: bool, **_: Any) -> Iterator[SampleInput]:
    for sizes in ((3, 4), (4, 6)):
        a = torch.testing.make_tensor(sizes, device=device, dtype=dtype, low=1, high=9)
        yield SampleInput(a.requires_grad_(requires_grad), args=(), kwargs={"dim": 1})


def endless(x: torch.Tensor, dim: int) -> torch.Tensor:
    if x.shape[1] == 6:
        time.sleep(3600)
    return x * 2


def operator(name: str = "mul") -> Operator:
    """`mul` (element-wise), `cumsum` (with an argument), `dropout` (random), `endless` (one of its calls never ends)."""
    if name == "mul":
        return Operator(BinaryUfuncInfo("mul", dtypes=FLOATS, sample_inputs_func=pairs, supports_out=True))
    if name == "cumsum":
        return Operator(OpInfo("cumsum", dtypes=FLOATS, sample_inputs_func=matrices, supports_out=True))
    if name == "endless":
        return Operator(OpInfo("endless", op=endless, dtypes=FLOATS, sample_inputs_func=matrices, supports_out=False))
    random = lambda x, dim: torch.nn.functional.dropout(x)
    return Operator(OpInfo("dropout", op=random, dtypes=FLOATS, sample_inputs_func=matrices, supports_out=False))
