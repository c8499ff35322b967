"""pytorch#174891: neighbour: other broadcast arithmetic of complex tensors."""

import torch

a = torch.randn(3, 4, dtype=torch.complex64)
row = torch.randn(1, 4, dtype=torch.complex64)
real = torch.randn(3, 1)
for f in (
    lambda a, r, t: a + r,
    lambda a, r, t: a - r,
    lambda a, r, t: torch.add(a, r, alpha=2),
    lambda a, r, t: a + t,
    lambda a, r, t: t + a * r,
):
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(f)(a, row, real), f(a, row, real))
