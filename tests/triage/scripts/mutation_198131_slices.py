"""pytorch#198131: neighbour: two buffers of a module, prev[0:] = cur[0:]."""

import sys

import torch


class Ring(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("prev", torch.zeros(4))
        self.register_buffer("cur", torch.arange(4.0))

    def forward(self, x):
        self.prev[0:] = self.cur[0:]
        self.cur.mul_(2).add_(x)
        return self.cur.sum()


a, b = Ring(), Ring()
c = torch.compile(b)
for _ in range(3):
    a(torch.ones(4))
    c(torch.ones(4))
ok = torch.equal(a.prev, b.prev) and torch.equal(a.cur, b.cur)
print("prev", a.prev.tolist(), b.prev.tolist())
sys.exit(0 if ok else 1)
