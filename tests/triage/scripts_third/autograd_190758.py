"""pytorch#190758: with a memory budget the backward draws dropout's mask anew."""

import torch
import torch._functorch.config
import torch.nn.functional as F

torch._functorch.config.activation_memory_budget = 0.0


@torch.compile
def f(x):
    return F.dropout(torch.sin(x), 0.5, True)


torch.manual_seed(0)
x = torch.full((64,), 0.3, requires_grad=True)
out = f(x)
out.sum().backward()
assert torch.equal(out != 0, x.grad != 0), "forward and backward have other masks"
