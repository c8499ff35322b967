"""Attention by hand of a query that is NaN: NaN in eager, 0 when compiled. A NaN is lost on the way.

Inductor puts scaled_dot_product_attention in place of product, softmax, product. On the CPU its fused kernel takes the largest score of
a row so that NaN are passed over, holds the row for one without keys, and answers 0; its own `MATH` backend answers NaN. (A row whose
scores are all minus infinity is another matter: 0 is upstream's declared answer there, and the fuzzer does not judge it.) The kernel's
part was pytorch/pytorch#141128, closed; seen again on aarch64. Found by shape fuzzing on torch 2.14.1. Needs torch alone; exits 1 while
the defect is there.
"""

import sys

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25, dim=-1) @ v


torch.manual_seed(0)
q, k, v = (torch.randn(1, 1, 2, 2) for _ in range(3))
q[0, 0, 0] = torch.nan
eager, compiled = attention(q, k, v), torch.compile(attention)(q, k, v)
with sdpa_kernel(SDPBackend.MATH):
    math = F.scaled_dot_product_attention(q, k, v, scale=0.25)
fused = F.scaled_dot_product_attention(q, k, v, scale=0.25)
for name, out in {"by hand": eager, "compiled": compiled, "sdpa, MATH": math, "sdpa, fused": fused}.items():
    print(f"{name}: {out.flatten().tolist()}")
wrong = not torch.equal(compiled.isnan(), eager.isnan())
print("torch", torch.__version__, "WRONG" if wrong else "right")
sys.exit(wrong)
