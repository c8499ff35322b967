"""pytorch#115750: a full backward hook added after the first call does not run."""

import torch

net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
with torch.no_grad():
    net[0].weight.fill_(1.0)
c = torch.compile(net)
x = torch.ones(1, 2, requires_grad=True)
c(x).sum().backward()
x.grad = None
calls = []
net[0].register_full_backward_hook(lambda m, gi, go: calls.append(m))
c(x).sum().backward()
assert len(calls) == 1, f"the backward hook ran {len(calls)} times"
