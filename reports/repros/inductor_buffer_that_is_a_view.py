"""A buffer is a view of a parameter and is updated in place: compiled, it is refused or lost."""

import torch


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2, 2))
        self.register_buffer("flat", self.w.detach().view(-1), persistent=False)

    def forward(self, x):
        with torch.no_grad():
            self.flat.mul_(2)
        return x @ self.w


a, b = Tied(), Tied()
want, got = a(torch.ones(1, 2)), torch.compile(b)(torch.ones(1, 2))
torch.testing.assert_close(got, want)
torch.testing.assert_close(b.w, a.w)
