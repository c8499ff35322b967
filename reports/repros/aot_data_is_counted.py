"""A write through .data raises the input's version in a compiled program: a backward that eager allows is refused. See pytorch#139152."""

import torch


def write(x):
    x.data.add_(1)
    return x * 2


x = torch.ones(4, requires_grad=True)
product = (x * x).sum()
torch.compile(write, backend="aot_eager")(x)
try:
    product.backward()
except RuntimeError as error:
    raise SystemExit(f"torch {torch.__version__}: version {x._version}: {str(error)[:80]}") from None
