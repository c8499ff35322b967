"""Constants that are NaN are compared while kernels are fused: ValueError: The argument 'nan' is not comparable (torch 2.11). Needs a GPU.

Without one: conformance run -b inductor -t sm_90 -m upstream.odd_tensors.differences_of_infinities"""

import torch


def chosen(x):
    low = torch.log(torch.zeros(2, 1, device=x.device))
    odd = low - low
    return x + odd, torch.maximum(x, odd), odd.sum(), odd.softmax(0), torch.where(odd > 0, x, -x)


x = torch.randn(2, 1, device="cuda")
try:
    got = torch.compile(chosen)(x)
except Exception as error:
    raise SystemExit(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
if not all(torch.allclose(a, b, equal_nan=True) for a, b in zip(got, chosen(x), strict=True)):
    raise SystemExit("not what eager gives")
