"""No report known: torch.export of torch.func.vmap of jacrev raises."""

import torch


class Jacobians(torch.nn.Module):
    def forward(self, x):
        return torch.func.vmap(torch.func.jacrev(torch.sin))(x)


x = torch.randn(3, 2)
want = Jacobians()(x)
program = torch.export.export(Jacobians(), (x,), strict=False)
assert torch.allclose(program.module()(x), want)
