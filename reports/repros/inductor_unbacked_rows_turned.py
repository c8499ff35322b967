"""Chosen rows, transposed, made contiguous and multiplied with themselves, do not compile where gradients are wanted: a guard on an unbacked size."""

import torch

torch._dynamo.config.capture_dynamic_output_shape_ops = True


def f(x, mask):
    turned = x[mask].t().contiguous()
    return turned @ turned.t() + turned.sum(1)


x, mask = torch.randn(10, 6, requires_grad=True), torch.arange(10) % 2 == 0
want = f(x, mask)
try:
    got = torch.compile(f)(x, mask)
except Exception as error:
    raise SystemExit(f"{type(error).__name__}: {' '.join(str(error).split())[:150]}") from None
raise SystemExit(0 if torch.allclose(want, got) else "the values differ")
