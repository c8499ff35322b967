"""The gradients of a running sum and a running product of one tensor: AssertionError 138 v.s. 137 in the scheduler (torch 2.11). Needs a GPU.

Without one: conformance run -b inductor -t sm_90 -m upstream.scans.gradient_of_scan"""

import torch


def scans(x, row):
    return (x + row).cumsum(1), (x / 1.1).cumprod(1)


def gradients(fn, x, row):
    x, row = x.clone().requires_grad_(), row.clone().requires_grad_()
    return torch.autograd.grad([y.sum() for y in fn(x, row)], (x, row))


x, row = torch.rand(2, 140, device="cuda") + 0.5, torch.randn(140, device="cuda")
try:
    got = gradients(torch.compile(scans), x, row)
except Exception as error:
    raise SystemExit(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
if not all(torch.allclose(a, b, rtol=1e-3) for a, b in zip(got, gradients(scans, x, row), strict=True)):
    raise SystemExit("not what eager gives")
