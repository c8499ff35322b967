"""pytorch#153679: gradients of two chained scans."""

import sys

import torch
from torch._higher_order_ops.scan import scan

torch.manual_seed(0)


def layer(a, xs):
    def body(h, x):
        h = torch.tanh(a * h + x)
        return h, h.clone()

    return scan(body, torch.zeros(2, 3), xs)[1]


def loop(a, xs):
    h, out = torch.zeros(2, 3), []
    for x in xs:
        h = torch.tanh(a * h + x)
        out.append(h)
    return torch.stack(out)


def model(stack, a, b, xs):
    return stack(b, stack(a, xs)).square().sum()


xs = torch.randn(5, 2, 3)
grads = []
for fn in (lambda a, b: model(loop, a, b, xs), torch.compile(lambda a, b: model(layer, a, b, xs))):
    a, b = torch.full((3,), 0.5, requires_grad=True), torch.full((3,), -0.7, requires_grad=True)
    fn(a, b).backward()
    grads.append((a.grad, b.grad))
err = [((p - q).abs().max() / p.abs().max()).item() for p, q in zip(*grads, strict=True)]
print("relative errors of the gradients", err)
sys.exit(max(err) > 1e-3)
