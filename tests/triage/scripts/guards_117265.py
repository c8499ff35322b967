"""pytorch#117265: a full backward pre-hook added after the first call is ignored."""

import sys

import torch

net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
with torch.no_grad():
    net[0].weight.fill_(1.0)
c = torch.compile(net)


def input_grad(fn):
    x = torch.ones(1, 2, requires_grad=True)
    fn(x).sum().backward()
    return x.grad


input_grad(c)
net[0].register_full_backward_pre_hook(lambda module, grad: (grad[0] * 100,))
want, got = input_grad(net), input_grad(c)
print("with the hook: eager", want.tolist(), "compiled", got.tolist())
sys.exit(not torch.equal(want, got))
