"""Attention kernels: chosen as torch chooses on each GPU, and computed by the definition."""

from __future__ import annotations

import pytest
import torch

from conformance.headless.attention import CUDNN, EFFICIENT, FLASH, MATH, STAND_INS, Call, choice, cudnn_version
from conformance.target import DEVICES

HALF, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


def call(
    target: str,
    dtype: torch.dtype,
    d: int = 64,
    mask: bool = False,
    causal: bool = False,
    gqa: bool = False,
    s_k: int = 16,
) -> Call:
    q = torch.empty(2, 4, 16, d, dtype=dtype)
    k, v = (torch.empty(2, 2 if gqa else 4, s_k, d, dtype=dtype) for _ in range(2))
    bias = torch.empty(2, 4, 16, s_k, dtype=dtype) if mask else None
    return Call(DEVICES[target], q, k, v, bias, 0.0, causal, gqa)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (call("sm_80", HALF), FLASH),
        (call("sm_90", HALF), CUDNN),
        (call("sm_100", BF16), CUDNN),
        (call("sm_120", BF16), FLASH),
        (call("sm_90", F32), EFFICIENT),
        (call("sm_80", HALF, mask=True), EFFICIENT),
        (call("sm_90", HALF, mask=True), CUDNN),
        (call("sm_80", HALF, d=20), FLASH),  # padded to a multiple of eight
        (call("sm_80", F32, d=18), MATH),
        (call("sm_80", torch.float64), MATH),
        (call("sm_80", HALF, causal=True, s_k=8), EFFICIENT),  # flash has another meaning of causal there
        (call("sm_80", HALF, gqa=True), FLASH),
        (call("sm_80", F32, gqa=True), MATH),
        (call("sm_90", HALF, s_k=1), FLASH),  # cuDNN needs two keys
        (call("sm_80", HALF, d=288), EFFICIENT),
    ],
)
def test_choice(case: Call, expected: int) -> None:
    if expected == CUDNN and cudnn_version() <= (9, 15, 0):
        pytest.skip("torch prefers cuDNN from 9.15.1 on")
    assert choice(case) == expected


@pytest.mark.parametrize("name", ["flash", "efficient", "cudnn"])
@pytest.mark.parametrize("causal", [False, True])
def test_stand_ins_agree_with_autograd(name: str, causal: bool) -> None:
    dtype = F32 if name == "efficient" else HALF
    q, k, v = (torch.randn(2, 3, 8, 16, dtype=dtype) for _ in range(3))
    kernel = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention").default
    middle = {"flash": (), "efficient": (None, True), "cudnn": (None, True)}[name]
    forward = STAND_INS[kernel](q, k, v, *middle, 0.0, causal)
    wide = [t.double().requires_grad_() for t in (q, k, v)]
    exact = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=causal)
    assert torch.allclose(forward[0].double(), exact, atol=2e-3)

    gradient = torch.randn_like(forward[0])
    exact.backward(gradient.double())
    out, total = forward[:2]
    rest = {
        "flash": (gradient, q, k, v, out, total, forward[2], forward[3], 8, 8, 0.0, causal, *forward[6:8]),
        "efficient": (gradient, q, k, v, None, out, total, *forward[2:4], 0.0, [True, True, True, False], causal),
        "cudnn": (gradient, q, k, v, out, total, *forward[6:8], None, *forward[2:6], 0.0, causal),
    }[name]
    found = STAND_INS[getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention_backward").default](*rest)
    for got, leaf in zip(found, wide, strict=False):
        assert torch.allclose(got.double(), leaf.grad, atol=1e-2)
