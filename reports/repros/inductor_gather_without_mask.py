"""gather with flipped places, one row, dynamic width: since 2.13 the fused kernel asserts and loads without its mask. Needs a GPU.

Without one, the same kernel is interpreted: conformance run -b inductor -t sm_90 -m upstream.dynamic_kernels.gathered_by_place"""

import torch


def flipped(x):
    places = torch.arange(x.shape[1], device=x.device).flip(0)
    return x.gather(1, places.expand_as(x)), places


x = torch.randn(1, 5, device="cuda")
try:
    torch.compile(flipped, dynamic=True)(x)
    torch.cuda.synchronize()
except RuntimeError as error:
    raise SystemExit(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
