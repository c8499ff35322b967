"""pytorch#197859: neighbour: an entry of __dict__ shadows a registered buffer."""

import torch


class Shift(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x):
        return x + self.offset


m = Shift()
f = torch.compile(m)
f(torch.zeros(3))
vars(m)["offset"] = torch.full((3,), 5.0)
torch.testing.assert_close(f(torch.zeros(3)), m(torch.zeros(3)))
