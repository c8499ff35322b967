"""pytorch#144344: the backward of a custom op is edited; the old one is served from the cache."""

import subprocess
import sys

CHILD = """
import torch

FACTOR = %s

@torch.library.custom_op("third::identity", mutates_args=())
def identity(x: torch.Tensor) -> torch.Tensor:
    return x.clone()

identity.register_fake(lambda x: torch.empty_like(x))
identity.register_autograd(lambda ctx, grad: FACTOR * grad)
x = torch.ones(3, requires_grad=True)
torch.compile(lambda x: identity(x).sum())(x).backward()
assert x.grad.tolist() == [FACTOR] * 3, x.grad
"""
for factor in (3.0, 5.0):
    subprocess.run([sys.executable, "-c", CHILD % factor], check=True)
