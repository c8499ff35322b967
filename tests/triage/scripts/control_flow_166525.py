"""pytorch#166525: a Python integer in the state of a while_loop."""

import torch


class M(torch.nn.Module):
    def forward(self, a):
        return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + a), (0, torch.zeros_like(a)))


m = M()
a = torch.randn(2)
want = m(a)
got = torch.compile(m)(a)
assert want[0] == got[0] and torch.allclose(want[1], got[1])
