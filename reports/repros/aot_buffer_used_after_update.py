"""A buffer is updated in place and then used: the backward updates it once more to compute its use again. See pytorch#197039."""

import torch


class Centred(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.add_(1)
        return (x - self.mean) * self.scale


told = []
for compile in (lambda module: module, torch.compile):
    module = Centred()
    compile(module)(torch.zeros(3, 4)).sum().backward()
    told.append(module.scale.grad.tolist())
if told[0] != told[1]:
    raise SystemExit(f"torch {torch.__version__}: eager {told[0]}, compiled {told[1]}")
