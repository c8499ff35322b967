"""A complex constant that is made inside of the program has no place in a Triton kernel: KeyError 'complex64'. Needs a GPU.

Without one: conformance run -b inductor -t sm_90 -m upstream.complex_numbers.constant_factor"""

import torch


def scaled(x):
    return x * torch.tensor(2.0 - 1j, device=x.device)


x = torch.randn(6, device="cuda", dtype=torch.complex64)
try:
    got = torch.compile(scaled)(x)
except Exception as error:
    raise SystemExit(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
if not torch.allclose(got, scaled(x)):
    raise SystemExit("not what eager gives")
